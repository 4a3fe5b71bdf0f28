// Embed, Norm, Add, Quantize and Glu.
#include <fmt/format.h>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;

void add_steps(CaseBuilder& b) {
  for (const uint32_t k : {1U, 2U, 3U, 7U, 16U, 33U, 65U}) b.step(b.next_columns(0, k));
}

void add_embed(std::vector<OpCase>& cases, DType dtype, uint32_t width) {
  CaseBuilder b(fmt::format("embed_{}_{}", formats::dtype_name(dtype), width), KernelClass::decode,
                {});
  b.result().resources.vocab_size = 301;
  const plan::ValueId out = b.value("out", width);
  b.op(plan::Embed{.table = b.weight("table", dtype, 301, width), .out = out, .scale = 1.5F});
  b.output(out, 1e-6);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

void add_norm(std::vector<OpCase>& cases, uint32_t width, uint32_t group, bool weight,
              float offset) {
  CaseBuilder b(fmt::format("norm_rms_{}_{}{}{}", width, group, weight ? "_weight" : "",
                            offset != 0.0F ? "_offset" : ""),
                KernelClass::decode, {});
  const plan::ValueId x = b.input("x", width, plan::ValueType::f32, 5.0F);
  plan::Norm op{.x = x, .out = b.value("out", width), .weight = {}};
  if (weight) op.weight = b.weight("w", DType::F32, 1, group);
  op.eps = 1e-5F;
  op.weight_offset = offset;
  op.group = group;
  b.op(op);
  b.output(op.out, 2e-6);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

void add_sum(std::vector<OpCase>& cases, uint32_t width, float scale) {
  CaseBuilder b(fmt::format("add_{}_{}", width, scale == 1.0F ? "plain" : "scaled"),
                KernelClass::decode, {});
  plan::Add op{.a = b.input("a", width), .b = b.input("b", width), .out = b.value("out", width)};
  op.scale = scale;
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

void add_glu(std::vector<OpCase>& cases, uint32_t width, plan::Activation activation) {
  constexpr const char* kNames[] = {"silu", "gelu_tanh", "gelu_erf", "relu", "relu_squared"};
  CaseBuilder b(fmt::format("glu_{}_{}", kNames[static_cast<int>(activation)], width),
                KernelClass::decode, {});
  plan::Glu op{.x = b.input("x", 2 * width, plan::ValueType::f32, 4.0F),
               .out = b.value("out", width)};
  op.activation = activation;
  b.op(op);
  b.output(op.out, 3e-6);
  add_steps(b);
  // Far into both tails, where exp under- and overflows.
  b.step(b.next_columns(1, 1));
  std::vector<float> values(2 * width, 1.0F);
  for (size_t i = 0; i < width; ++i) {
    values[i] = (i % 2 == 0 ? 1.0F : -1.0F) * static_cast<float>(i % 140);
  }
  b.set_input(op.x, values);
  cases.push_back(std::move(b.result()));
}

}  // namespace

void add_pointwise_cases(std::vector<OpCase>& cases) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0,
                            DType::Q4_1, DType::Q4_K, DType::Q6_K}) {
    add_embed(cases, dtype, 512);
    if (formats::dtype_info(dtype).block_elements == 1) add_embed(cases, dtype, 45);
  }
  add_norm(cases, 576, 576, true, 0.0F);
  add_norm(cases, 83, 83, true, 1.0F);
  add_norm(cases, 96, 24, true, 0.0F);
  add_norm(cases, 1200, 1200, false, 0.0F);
  add_sum(cases, 576, 1.0F);
  add_sum(cases, 77, -0.3F);
  add_quantize(cases, 576);
  add_quantize(cases, 32);
  for (const auto activation :
       {plan::Activation::silu, plan::Activation::gelu_tanh, plan::Activation::gelu_erf,
        plan::Activation::relu, plan::Activation::relu_squared}) {
    add_glu(cases, 96, activation);
    add_glu(cases, 301, activation);
  }
}

}  // namespace wisp::backend::selftest
