// Route, ExpertLinear, Combine, Gate, GLUs of several groups or with limits, and all of them in a
// row. Routes come from a Route op over random logits, so that their numbers are valid.
#include <fmt/format.h>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;
using plan::ValueId;

constexpr uint32_t kSteps[] = {1, 2, 3, 8, 17, 33, 65};

void add_steps(CaseBuilder& b) {
  for (const uint32_t k : kSteps) b.step(b.next_columns(0, k));
}

struct RouteCase {
  const char* name = "";
  uint32_t experts = 0;
  uint32_t top_k = 1;
  plan::RouterScore score = plan::RouterScore::softmax;
  bool bias = false;
  uint32_t num_groups = 1;
  uint32_t top_groups = 1;
  plan::GroupScore group_score = plan::GroupScore::best;
  bool normalise = false;
  float scale = 1.0F;
  bool expert_scales = false;
};

void add_route(std::vector<OpCase>& cases, const RouteCase& r) {
  constexpr uint32_t kWidth = 5;
  CaseBuilder b(fmt::format("route_{}_{}_of_{}", r.name, r.top_k, r.experts), KernelClass::decode,
                {});
  const ValueId logits = b.input("logits", r.experts, plan::ValueType::f32, 4.0F);
  plan::Route op{.logits = logits,
                 .out = b.value("routes", 2 * r.top_k),
                 .top_k = r.top_k,
                 .score = r.score,
                 .num_groups = r.num_groups,
                 .top_groups = r.top_groups,
                 .group_score = r.group_score,
                 .normalise = r.normalise,
                 .scale = r.scale};
  if (r.bias) op.bias = b.weight("bias", DType::F32, 1, r.experts, 0.5F);
  if (r.expert_scales) op.expert_scales = b.weight("scales", DType::F32, 1, r.experts, 1.5F);
  b.op(op);
  // The weights are small beside the numbers: a sum of them shows their errors.
  const plan::Combine sum{
      .x = b.input("x", r.top_k * kWidth), .routes = op.out, .out = b.value("sum", kWidth)};
  b.op(sum);
  b.output(op.out, 1e-5);
  b.output(sum.out, 1e-5);
  add_steps(b);
  // Ties go to the lower number: all logits equal, then only a few different ones.
  b.step(b.next_columns(1, 2));
  std::vector<float> equal(size_t{2} * r.experts, 0.5F);
  for (size_t e = r.experts; e < equal.size(); ++e) equal[e] = static_cast<float>(e * 7 % 3);
  b.set_input(logits, equal);
  cases.push_back(std::move(b.result()));
}

void add_routes(std::vector<OpCase>& cases) {
  constexpr auto kSigmoid = plan::RouterScore::sigmoid;
  constexpr auto kTwo = plan::GroupScore::best_two;
  add_route(cases, {.name = "softmax", .experts = 1, .top_k = 1});
  add_route(cases, {.name = "softmax", .experts = 8, .top_k = 2, .normalise = true});
  add_route(cases, {.name = "softmax", .experts = 3, .top_k = 3, .scale = 2.5F});
  add_route(cases, {.name = "softmax", .experts = 128, .top_k = 8, .normalise = true});
  add_route(cases, {.name = "softmax", .experts = 300, .top_k = 6, .scale = 0.5F});
  add_route(cases, {.name = "softmax", .experts = 1100, .top_k = 64});
  add_route(cases, {.name = "softmax_bias", .experts = 64, .top_k = 6, .bias = true});
  add_route(cases, {.name = "softmax_scales",
                    .experts = 50,
                    .top_k = 7,
                    .normalise = true,
                    .expert_scales = true});
  add_route(cases, {.name = "softmax_groups",
                    .experts = 160,
                    .top_k = 6,
                    .num_groups = 8,
                    .top_groups = 3,
                    .scale = 16.0F});
  add_route(cases, {.name = "sigmoid", .experts = 16, .top_k = 1, .score = kSigmoid});
  add_route(cases, {.name = "sigmoid_bias",
                    .experts = 77,
                    .top_k = 5,
                    .score = kSigmoid,
                    .bias = true,
                    .normalise = true});
  add_route(cases, {.name = "sigmoid_groups",
                    .experts = 256,
                    .top_k = 8,
                    .score = kSigmoid,
                    .bias = true,
                    .num_groups = 8,
                    .top_groups = 4,
                    .group_score = kTwo,
                    .normalise = true,
                    .scale = 2.5F});
  add_route(cases, {.name = "groups_of_one",
                    .experts = 100,
                    .top_k = 4,
                    .num_groups = 100,
                    .top_groups = 7,
                    .group_score = kTwo});
}

// Routes over `experts` for the columns of a case.
ValueId routes(CaseBuilder& b, uint32_t experts, uint32_t top_k) {
  const plan::Route op{.logits = b.input("logits", experts, plan::ValueType::f32, 3.0F),
                       .out = b.value("routes", 2 * top_k),
                       .top_k = top_k,
                       .normalise = true};
  b.op(op);
  return op.out;
}

enum class Mode : uint8_t { exact, half, int8 };

struct Experts {
  uint32_t experts = 0;
  uint32_t top_k = 1;
  uint32_t rows = 0;
  uint32_t cols = 0;
  bool own_x = false;  // x for each chosen expert
  bool bias = false;
};

void add_expert_linear(std::vector<OpCase>& cases, DType dtype, Mode mode, KernelClass kernel_class,
                       const Experts& e) {
  constexpr const char* kModes[] = {"exact", "half", "int8"};
  CaseBuilder b(
      fmt::format("expert_linear_{}_{}_{}_{}_of_{}_{}x{}{}{}", formats::dtype_name(dtype),
                  kModes[static_cast<int>(mode)],
                  kernel_class == KernelClass::prefill ? "prefill" : "decode", e.top_k, e.experts,
                  e.rows, e.cols, e.own_x ? "_own" : "", e.bias ? "_bias" : ""),
      kernel_class, {}, e.rows * 31 + e.cols);
  const auto type = mode == Mode::int8 ? plan::ValueType::q8 : plan::ValueType::f32;
  plan::ExpertLinear op{.x = b.input("x", e.own_x ? e.top_k * e.cols : e.cols, type, 2.0F),
                        .routes = routes(b, e.experts, e.top_k),
                        .weight = b.weight("w", dtype, e.experts * e.rows, e.cols, 0.5F),
                        .out = b.value("out", e.top_k * e.rows),
                        .num_experts = e.experts,
                        .top_k = e.top_k,
                        .bias = {},
                        .f16_inputs = mode == Mode::half};
  if (e.bias) op.bias = b.weight("bias", DType::F32, 1, e.experts * e.rows, 2.0F);
  b.op(op);
  b.output(op.out, 1e-5);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

void add_expert_linears(std::vector<OpCase>& cases) {
  using enum KernelClass;
  for (const DType dtype :
       {DType::F32, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_K, DType::Q6_K}) {
    const uint32_t block = formats::dtype_info(dtype).block_elements;
    const auto add = [&](Mode mode, KernelClass kernel_class, Experts e) {
      if (mode == Mode::int8 && block == 1) return;
      e.cols = (e.cols + block - 1) / block * block;
      add_expert_linear(cases, dtype, mode, kernel_class, e);
    };
    add(Mode::exact, decode, {.experts = 7, .top_k = 3, .rows = 37, .cols = 96, .own_x = true});
    add(Mode::half, prefill, {.experts = 16, .top_k = 2, .rows = 33, .cols = 544, .bias = true});
    add(Mode::int8, decode, {.experts = 9, .top_k = 4, .rows = 45, .cols = 544, .bias = true});
    add(Mode::int8, prefill, {.experts = 5, .top_k = 2, .rows = 64, .cols = 256, .own_x = true});
  }
  // Rows of no whole vector, of one expert and all of them, large matrices.
  for (const bool own_x : {false, true}) {
    add_expert_linear(
        cases, DType::F32, Mode::half, prefill,
        {.experts = 4, .top_k = 3, .rows = 5, .cols = 83, .own_x = own_x, .bias = true});
  }
  add_expert_linear(cases, DType::BF16, Mode::exact, decode,
                    {.experts = 1, .top_k = 1, .rows = 3, .cols = 20});
  add_expert_linear(cases, DType::Q4_0, Mode::int8, decode,
                    {.experts = 8, .top_k = 8, .rows = 1, .cols = 32, .own_x = true});
  add_expert_linear(cases, DType::BF16, Mode::exact, decode,
                    {.experts = 3, .top_k = 2, .rows = 2100, .cols = 64});
}

void add_combine(std::vector<OpCase>& cases, uint32_t width, uint32_t top_k, bool residual,
                 float scale) {
  CaseBuilder b(fmt::format("combine_{}_of_{}{}", top_k, width, residual ? "_residual" : ""),
                KernelClass::decode, {});
  plan::Combine op{.x = b.input("x", top_k * width, plan::ValueType::f32, 2.0F),
                   .routes = routes(b, 10, top_k),
                   .out = b.value("out", width)};
  if (residual) op.residual = b.input("residual", width);
  op.scale = scale;
  b.op(op);
  b.output(op.out, 3e-6);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

// `x_offset` elements before and after those that are gated.
void add_gate(std::vector<OpCase>& cases, uint32_t width, bool row, plan::Activation activation,
              uint32_t x_offset) {
  CaseBuilder b(
      fmt::format("gate_{}_{}{}", width, row ? "row" : "elements", x_offset > 0 ? "_of_more" : ""),
      KernelClass::decode, {});
  const plan::Gate op{.x = b.input("x", width + 2 * x_offset),
                      .gate = b.input("gate", row ? 1 : width, plan::ValueType::f32, 6.0F),
                      .out = b.value("out", width),
                      .activation = activation,
                      .x_offset = x_offset};
  b.op(op);
  b.output(op.out, 3e-6);
  add_steps(b);
  // Far into both tails.
  b.step(b.next_columns(1, 2));
  const uint32_t gates = b.result().plan[op.gate].width;
  std::vector<float> values(size_t{2} * gates);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 120.0F : -120.0F;
  b.set_input(op.gate, values);
  cases.push_back(std::move(b.result()));
}

void add_glu(std::vector<OpCase>& cases, const char* name, const plan::Glu& numbers,
             uint32_t width) {
  CaseBuilder b(fmt::format("glu_{}_{}_of_{}", name, numbers.groups, width), KernelClass::decode,
                {});
  plan::Glu op = numbers;
  op.x = b.input("x", 2 * width, plan::ValueType::f32, 9.0F);
  op.out = b.value("out", width);
  b.op(op);
  b.output(op.out, 3e-6);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

void add_glus(std::vector<OpCase>& cases) {
  using enum plan::Activation;
  add_glu(cases, "plain", {.activation = gelu_tanh, .groups = 4}, 128);
  add_glu(cases, "odd", {.activation = silu, .groups = 3}, 111);
  const plan::Glu oss{
      .activation = silu, .groups = 1, .alpha = 1.702F, .limit = 7.0F, .up_offset = 1.0F};
  add_glu(cases, "limit", oss, 96);
  plan::Glu groups = oss;
  groups.groups = 4;
  add_glu(cases, "limit", groups, 180);
  add_glu(cases, "relu_limit", {.activation = relu, .groups = 2, .limit = 3.0F}, 64);
}

// The sum of experts with what follows: the projection of the next layer, after its norm, and a
// router and projections that read the same norm.
void add_sum_and_norm(std::vector<OpCase>& cases, DType dtype, uint32_t width, bool weight) {
  constexpr uint32_t kTopK = 3;
  CaseBuilder b(fmt::format("combine_norm_{}_{}{}", formats::dtype_name(dtype), width,
                            weight ? "_weight" : ""),
                KernelClass::decode, {});
  const ValueId chosen = routes(b, 5, kTopK);
  const auto quantize = [&](ValueId x) {
    const ValueId out = b.value("q8", width, plan::Rows::columns, plan::ValueType::q8);
    b.op(plan::Quantize{.x = x, .out = out});
    return out;
  };
  const auto norm = [&](ValueId x) {
    plan::Norm op{.x = x, .out = b.value("norm", width)};
    if (weight) op.weight = b.weight("norm", DType::F32, 1, width, 2.0F);
    op.eps = 1e-5F;
    op.group = width;
    b.op(op);
    return op.out;
  };
  const auto linear = [&](ValueId x, DType type, uint32_t rows, double bound) {
    const plan::Linear op{.x = x,
                          .weight = b.weight("w", type, rows, width, 0.5F),
                          .out = b.value("linear", rows),
                          .bias = {},
                          .residual = {}};
    b.op(op);
    b.output(op.out, bound);
    return op.out;
  };
  const plan::Combine sum{.x = b.input("x", kTopK * width, plan::ValueType::f32, 2.0F),
                          .routes = chosen,
                          .out = b.value("sum", width),
                          .residual = b.input("residual", width)};
  b.op(sum);
  b.output(sum.out, 1e-6);
  // A quant that is rounded the other way moves the results about so much.
  constexpr double kFlipBound = 0.01;
  const ValueId next = linear(quantize(norm(sum.out)), dtype, width, kFlipBound);
  const ValueId read_twice = norm(next);
  linear(read_twice, DType::F32, 7, kFlipBound);
  linear(quantize(read_twice), dtype, 45, 2 * kFlipBound);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

// What a layer of experts is made of, with q8 inputs (whose GLU is quantised in its kernel) or f32.
void add_layer(std::vector<OpCase>& cases, DType dtype, Mode mode, KernelClass kernel_class) {
  constexpr uint32_t kHidden = 256;
  constexpr uint32_t kWidth = 512;
  constexpr uint32_t kExperts = 12;
  constexpr uint32_t kTopK = 4;
  const bool int8 = mode == Mode::int8;
  CaseBuilder b(
      fmt::format("experts_layer_{}_{}", formats::dtype_name(dtype), int8 ? "int8" : "half"),
      kernel_class, {});
  const auto quantize = [&](ValueId x) {
    if (!int8) return x;
    const ValueId out =
        b.value("q8", b.result().plan[x].width, plan::Rows::columns, plan::ValueType::q8);
    b.op(plan::Quantize{.x = x, .out = out});
    return out;
  };
  const ValueId x = b.input("x", kHidden, plan::ValueType::f32, 2.0F);
  const ValueId chosen = routes(b, kExperts, kTopK);
  const auto linear = [&](ValueId in, uint32_t rows, uint32_t cols) {
    const plan::ExpertLinear op{.x = quantize(in),
                                .routes = chosen,
                                .weight = b.weight("w", dtype, kExperts * rows, cols, 0.5F),
                                .out = b.value("linear", kTopK * rows),
                                .num_experts = kExperts,
                                .top_k = kTopK,
                                .bias = {},
                                .f16_inputs = mode == Mode::half};
    b.op(op);
    return op.out;
  };
  const plan::Glu glu{
      .x = linear(x, 2 * kWidth, kHidden), .out = b.value("glu", kTopK * kWidth), .groups = kTopK};
  b.op(glu);
  const plan::Combine sum{.x = linear(glu.out, kHidden, kWidth),
                          .routes = chosen,
                          .out = b.value("sum", kHidden),
                          .residual = x};
  b.op(sum);
  const plan::Gate gate{.x = sum.out, .gate = b.input("gate", 1), .out = b.value("gated", kHidden)};
  b.op(gate);
  const plan::Linear last{.x = quantize(gate.out),
                          .weight = b.weight("last", dtype, 45, kHidden, 0.5F),
                          .out = b.value("out", 45),
                          .f16_inputs = mode == Mode::half};
  b.op(last);
  // A quant or a half that is rounded otherwise moves the results about so much.
  b.output(last.out, 0.01);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

}  // namespace

void add_expert_cases(std::vector<OpCase>& cases) {
  add_routes(cases);
  add_expert_linears(cases);
  add_combine(cases, 96, 4, true, 1.0F);
  add_combine(cases, 45, 1, false, 0.5F);
  add_combine(cases, 301, 7, true, -2.0F);
  for (const bool row : {false, true}) {
    add_gate(cases, 96, row, plan::Activation::sigmoid, 0);
    add_gate(cases, 301, row, plan::Activation::sigmoid, 0);
    add_gate(cases, 45, row, plan::Activation::gelu_tanh, 48);
  }
  add_glus(cases);
  add_sum_and_norm(cases, DType::Q4_0, 288, true);
  add_sum_and_norm(cases, DType::Q8_0, 1056, false);
  add_layer(cases, DType::Q4_0, Mode::int8, KernelClass::decode);
  add_layer(cases, DType::BF16, Mode::half, KernelClass::prefill);
}

}  // namespace wisp::backend::selftest
