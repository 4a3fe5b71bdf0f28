// Embed, Norm, Add, Quantize, Glu, Activate and Softcap.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;

void add_steps(CaseBuilder& b) {
  for (const uint32_t k : {1U, 2U, 3U, 7U, 16U, 33U, 65U}) b.step(b.next_columns(0, k));
}

void add_embed(std::vector<OpCase>& cases, DType dtype, uint32_t width, bool positions) {
  CaseBuilder b(fmt::format("embed_{}_{}{}", formats::dtype_name(dtype), width,
                            positions ? "_positions" : ""),
                KernelClass::decode, {});
  b.result().resources.vocab_size = 301;
  plan::Embed op{.table = b.weight("table", dtype, 301, width), .out = b.value("out", width)};
  op.scale = 1.5F;
  if (positions) op.positions = b.weight("positions", DType::F32, 144, width);
  b.op(op);
  b.output(op.out, 1e-6);
  add_steps(b);
  if (positions) b.step({{7, 3, 2}, {11, 140, 1}, {7, 0, 0}});
  cases.push_back(std::move(b.result()));
}

struct NormCase {
  uint32_t width = 0;
  uint32_t group = 0;
  plan::NormKind kind = plan::NormKind::rms;
  bool weight = true;
  bool bias = false;
  bool own = false;  // weights of each group
  float offset = 0.0F;
  float center = 0.0F;  // of the inputs, which lie within +-1 of it; 0: within +-5 of 0
};

std::string norm_name(const NormCase& n) {
  std::string name = fmt::format("norm_{}_{}_{}", n.kind == plan::NormKind::rms ? "rms" : "layer",
                                 n.width, n.group);
  if (n.weight) name += "_weight";
  if (n.bias) name += "_bias";
  if (n.own) name += "_own";
  if (n.offset != 0.0F) name += "_offset";
  if (n.center != 0.0F) name += "_far";
  return name;
}

void add_norm(std::vector<OpCase>& cases, const NormCase& n) {
  CaseBuilder b(norm_name(n), KernelClass::decode, {});
  const plan::ValueId x = b.input("x", n.width, plan::ValueType::f32, 5.0F);
  plan::Norm op{.x = x, .out = b.value("out", n.width), .kind = n.kind};
  const uint32_t vector = n.own ? n.width : n.group;
  if (n.weight) op.weight = b.weight("w", DType::F32, 1, vector);
  if (n.bias) op.bias = b.weight("b", DType::F32, 1, vector);
  op.eps = 1e-5F;
  op.weight_offset = n.offset;
  op.group = n.group;
  b.op(op);
  // Far from 0 the mean is off by a few units of its last place, 6e-8 of it; that shows beside a
  // standard deviation of 0.58.
  b.output(op.out, n.center == 0.0F ? 2e-6 : 1e-6 * std::fabs(n.center));
  if (n.center == 0.0F) {
    add_steps(b);
  } else {
    for (const uint32_t k : {1U, 3U, 16U}) {
      b.step(b.next_columns(0, k));
      std::vector<float> values = random_floats(b.random(), size_t{k} * n.width);
      for (float& v : values) v += n.center;
      b.set_input(x, values);
    }
  }
  cases.push_back(std::move(b.result()));
}

void add_norms(std::vector<OpCase>& cases) {
  add_norm(cases, {.width = 576, .group = 576});
  add_norm(cases, {.width = 83, .group = 83, .offset = 1.0F});
  add_norm(cases, {.width = 96, .group = 24});
  add_norm(cases, {.width = 1200, .group = 1200, .weight = false});
  add_norm(cases, {.width = 160, .group = 40, .own = true, .offset = 1.0F});
  constexpr auto kLayer = plan::NormKind::layer;
  add_norm(cases, {.width = 576, .group = 576, .kind = kLayer, .bias = true});
  add_norm(cases, {.width = 1200, .group = 1200, .kind = kLayer});
  add_norm(cases, {.width = 768, .group = 768, .kind = kLayer, .weight = false});
  add_norm(cases, {.width = 64, .group = 64, .kind = kLayer, .weight = false, .bias = true});
  add_norm(cases, {.width = 83, .group = 83, .kind = kLayer, .bias = true, .offset = 1.0F});
  add_norm(cases, {.width = 3, .group = 3, .kind = kLayer, .bias = true});
  add_norm(cases, {.width = 96, .group = 24, .kind = kLayer, .bias = true});
  add_norm(cases, {.width = 240, .group = 80, .kind = kLayer, .bias = true, .own = true});
  add_norm(cases, {.width = 1024, .group = 1024, .kind = kLayer, .bias = true, .center = 1000.0F});
  add_norm(cases, {.width = 301, .group = 301, .kind = kLayer, .center = -1000.0F});
}

void add_sum(std::vector<OpCase>& cases, uint32_t width, float scale, float out_scale) {
  CaseBuilder b(fmt::format("add_{}_{}", width, scale == 1.0F ? "plain" : "scaled"),
                KernelClass::decode, {});
  plan::Add op{.a = b.input("a", width), .b = b.input("b", width), .out = b.value("out", width)};
  op.scale = scale;
  op.out_scale = out_scale;
  b.op(op);
  b.output(op.out, 1e-6);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

void add_quantize(std::vector<OpCase>& cases, uint32_t width) {
  CaseBuilder b(fmt::format("quantize_{}", width), KernelClass::decode, {});
  plan::Quantize op{.x = b.input("x", width, plan::ValueType::f32, 9.0F),
                    .out = b.value("out", width, plan::Rows::columns, plan::ValueType::q8)};
  b.op(op);
  b.output(op.out, 1e-6);
  add_steps(b);
  // A block of zeros, one of a single value, one of huge and one of subnormal values.
  b.step(b.next_columns(1, 4));
  std::vector<float> values(size_t{4} * width, 0.0F);
  values[width + width / 2] = -3.0F;
  for (size_t i = 0; i < width; ++i) {
    values[2 * width + i] = (i % 3 == 0 ? -1.0F : 0.7F) * 1e30F;
    values[3 * width + i] = static_cast<float>(i % 5) * 1e-41F;
  }
  b.set_input(op.x, values);
  cases.push_back(std::move(b.result()));
}

constexpr const char* kActivations[] = {"silu", "gelu_tanh",    "gelu_erf",
                                        "relu", "relu_squared", "sigmoid"};

// Numbers far into both tails, where exp under- and overflows.
std::vector<float> tails(size_t count) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back((i % 2 == 0 ? 1.0F : -1.0F) * static_cast<float>(i % 140));
  }
  return values;
}

void add_glu(std::vector<OpCase>& cases, uint32_t width, plan::Activation activation) {
  CaseBuilder b(fmt::format("glu_{}_{}", kActivations[static_cast<int>(activation)], width),
                KernelClass::decode, {});
  plan::Glu op{.x = b.input("x", 2 * width, plan::ValueType::f32, 4.0F),
               .out = b.value("out", width)};
  op.activation = activation;
  b.op(op);
  b.output(op.out, 3e-6);
  add_steps(b);
  b.step(b.next_columns(1, 1));
  std::vector<float> values = tails(width);
  values.resize(2 * width, 1.0F);
  b.set_input(op.x, values);
  cases.push_back(std::move(b.result()));
}

void add_activate(std::vector<OpCase>& cases, uint32_t width, plan::Activation activation) {
  CaseBuilder b(fmt::format("activate_{}_{}", kActivations[static_cast<int>(activation)], width),
                KernelClass::decode, {});
  const plan::Activate op{.x = b.input("x", width, plan::ValueType::f32, 4.0F),
                          .out = b.value("out", width),
                          .activation = activation};
  b.op(op);
  b.output(op.out, 3e-6);
  add_steps(b);
  b.step(b.next_columns(1, 1));
  b.set_input(op.x, tails(width));
  // A NaN stays one.
  b.step(b.next_columns(1, 1));
  std::vector<float> values = random_floats(b.random(), width);
  values[width / 2] = std::numeric_limits<float>::quiet_NaN();
  b.set_input(op.x, values);
  cases.push_back(std::move(b.result()));
}

void add_softcap(std::vector<OpCase>& cases, uint32_t width, float cap) {
  CaseBuilder b(fmt::format("softcap_{}_{}", width, static_cast<int>(cap)), KernelClass::decode,
                {});
  const plan::Softcap op{.x = b.input("x", width, plan::ValueType::f32, 2.0F * cap),
                         .out = b.value("out", width),
                         .cap = cap};
  b.op(op);
  b.output(op.out, 2e-6);
  add_steps(b);
  // Small, large and infinite values, and a NaN, which stays one.
  b.step(b.next_columns(1, 2));
  std::vector<float> values = random_floats(b.random(), size_t{2} * width, 0.01F * cap);
  for (size_t i = width; i < values.size(); ++i) values[i] *= i % 2 == 0 ? 1e4F : 1e20F;
  values[width] = std::numeric_limits<float>::infinity();
  values[width + 1] = -values[width];
  values[width + 2] = std::numeric_limits<float>::quiet_NaN();
  b.set_input(op.x, values);
  cases.push_back(std::move(b.result()));
}

}  // namespace

void add_pointwise_cases(std::vector<OpCase>& cases) {
  for (const formats::DTypeInfo& info : formats::all_dtypes()) {
    if (!info.is_weight) continue;
    add_embed(cases, info.dtype, 512, false);
    if (info.block_elements == 1) add_embed(cases, info.dtype, 45, false);
  }
  add_embed(cases, DType::F16, 45, true);
  add_embed(cases, DType::Q4_0, 96, true);
  add_norms(cases);
  add_sum(cases, 576, 1.0F, 1.0F);
  add_sum(cases, 77, -0.3F, 0.7F);
  add_quantize(cases, 576);
  add_quantize(cases, 32);
  for (const auto activation :
       {plan::Activation::silu, plan::Activation::gelu_tanh, plan::Activation::gelu_erf,
        plan::Activation::relu, plan::Activation::relu_squared, plan::Activation::sigmoid}) {
    add_glu(cases, 96, activation);
    add_glu(cases, 301, activation);
    add_activate(cases, 301, activation);
  }
  add_softcap(cases, 301, 30.0F);
  add_softcap(cases, 64, 1.0F);
}

}  // namespace wisp::backend::selftest
