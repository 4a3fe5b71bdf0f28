// Which ops the WebGPU backend draws together.
#include "backend/gpu/fuse.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "backend/selftest/op_case.h"

namespace wisp::backend::webgpu {
namespace {

using plan::KernelClass;
using plan::ValueId;
using plan::ValueType;
using selftest::CaseBuilder;
using selftest::OpCase;

constexpr uint32_t kWidth = 64;

gpu::Capabilities with_matrices() {
  return {.f16 = true,
          .subgroups = true,
          .matrices = {{.m = 16, .n = 16, .k = 16}},
          .subgroup_min_size = 32,
          .subgroup_max_size = 32,
          .workgroup_memory = 49152};
}

plan::Plan fused(const OpCase& op_case, std::vector<ValueId> kept = {},
                 const gpu::Capabilities& capabilities = {}, size_t parts = 1) {
  std::vector<DeviceWeight> weights;
  for (const plan::Weight& weight : op_case.resources.weights) {
    for (weights.emplace_back(); weights.back().size() < parts;) {
      weights.back().emplace_back().rows = weight.rows;
    }
  }
  return fuse(op_case.plan, op_case.resources, capabilities, weights, kept);
}

std::vector<std::string> kinds(const plan::Plan& plan) {
  std::vector<std::string> list;
  for (const plan::Op& op : plan.ops) list.emplace_back(plan::op_kind(op.body));
  return list;
}

struct Chain {
  explicit Chain(KernelClass kernel_class) : b("chain", kernel_class, {}) {}

  ValueId quantize(ValueId x) {
    const ValueId out = b.value("q8", b.result().plan[x].width, plan::Rows::columns, ValueType::q8);
    b.op(plan::Quantize{.x = x, .out = out});
    return out;
  }
  ValueId linear(ValueId x, uint32_t rows, bool f16_inputs = false,
                 std::optional<ValueId> residual = {}) {
    const uint32_t width = b.result().plan[x].width;
    const ValueId out = b.value("linear", rows);
    plan::Linear op{.x = x,
                    .weight = b.weight("w", formats::DType::Q4_0, rows, width),
                    .out = out,
                    .bias = {},
                    .residual = residual};
    op.f16_inputs = f16_inputs;
    b.op(op);
    return out;
  }
  ValueId norm(ValueId x, uint32_t group = kWidth) {
    const ValueId out = b.value("norm", kWidth);
    b.op(plan::Norm{.x = x, .out = out, .weight = {}, .eps = 1e-5F, .group = group});
    return out;
  }
  ValueId layer_norm(ValueId x) {
    const ValueId out = b.value("layer_norm", kWidth);
    b.op(plan::Norm{.x = x,
                    .out = out,
                    .kind = plan::NormKind::layer,
                    .weight = b.weight("w", formats::DType::F32, 1, kWidth),
                    .bias = b.weight("b", formats::DType::F32, 1, kWidth),
                    .eps = 1e-5F,
                    .group = kWidth});
    return out;
  }
  ValueId activate(ValueId x) {
    const ValueId out = b.value("act", b.result().plan[x].width);
    b.op(plan::Activate{.x = x, .out = out});
    return out;
  }
  ValueId glu(ValueId x, plan::Glu numbers = {}) {
    numbers.x = x;
    numbers.out = b.value("glu", b.result().plan[x].width / 2);
    b.op(numbers);
    return numbers.out;
  }
  ValueId gate(ValueId x) {
    const ValueId out = b.value("gated", b.result().plan[x].width);
    b.op(plan::Gate{.x = x, .gate = b.input("gate", 1), .out = out});
    return out;
  }
  ValueId experts(ValueId x, ValueId router_x) {
    const ValueId routes = b.value("routes", 2);
    b.op(plan::Route{.logits = linear(router_x, 2), .out = routes});
    const ValueId out = b.value("experts", 8);
    b.op(plan::ExpertLinear{.x = x,
                            .routes = routes,
                            .weight = b.weight("w", formats::DType::Q4_0, 16, kWidth),
                            .out = out,
                            .num_experts = 2,
                            .top_k = 1});
    return out;
  }

  CaseBuilder b;
};

using Kinds = std::vector<std::string>;

TEST(Fuse, ANormGoesIntoTheProjectionBeforeIt) {
  Chain c(KernelClass::decode);
  const ValueId x = c.b.input("x", kWidth);
  const ValueId sum = c.linear(c.quantize(x), kWidth, false, x);
  const ValueId normed = c.quantize(c.norm(sum));
  c.linear(normed, 40);
  c.linear(normed, 8);
  const plan::Plan plan = fused(c.b.result());
  ASSERT_EQ(kinds(plan), (Kinds{"quantize", "linear", "linear", "linear"}));
  const auto& first = std::get<plan::Linear>(plan.ops[1].body);
  ASSERT_TRUE(first.norm.has_value());
  EXPECT_EQ(first.norm->out, normed);
  EXPECT_EQ(first.out, sum);
  EXPECT_EQ(plan[normed].type, ValueType::q8_rms);
  for (const size_t reader : {2, 3}) {
    EXPECT_EQ(std::get<plan::Linear>(plan.ops[reader].body).x_norm_eps, 1e-5F);
  }
}

TEST(Fuse, AGluGoesIntoTheProjectionBeforeIt) {
  Chain c(KernelClass::decode);
  const ValueId gate_up = c.linear(c.quantize(c.b.input("x", kWidth)), 2 * kWidth);
  const ValueId gated = c.quantize(c.glu(gate_up));
  c.linear(gated, 8);
  const plan::Plan plan = fused(c.b.result());
  ASSERT_EQ(kinds(plan), (Kinds{"quantize", "linear", "linear"}));
  const auto& first = std::get<plan::Linear>(plan.ops[1].body);
  EXPECT_TRUE(first.glu.has_value());
  EXPECT_EQ(first.out, gated);
}

TEST(Fuse, ARotationGoesIntoTheProjectionBeforeIt) {
  constexpr uint32_t kHead = 32;
  const auto plan_of = [&](const plan::RopeKv& changes, std::optional<ValueId> residual = {},
                           bool norms = false, uint32_t storage_buffers = 11) {
    Chain c(KernelClass::decode);
    plan::RopeKv op = changes;
    op.num_heads = 2;
    if (norms) op.q_norm = op.k_norm = c.b.weight("norm", formats::DType::F32, 1, kHead);
    op.kv_layer = c.b.kv_layer({1, kHead, kHead});
    if (residual) residual = c.b.input("residual", 4 * kHead);
    op.qkv = c.linear(c.quantize(c.b.input("x", kWidth)), 4 * kHead, false, residual);
    op.out = c.b.value("q", 2 * kHead);
    op.rope = c.b.weight("rope", 144, kHead, selftest::rope_table(144, kHead));
    c.b.op(op);
    return fused(c.b.result(), {}, {.max_storage_buffers = storage_buffers});
  };
  const plan::Plan plan = plan_of({});
  ASSERT_EQ(kinds(plan), (Kinds{"quantize", "linear"}));
  const auto& linear = std::get<plan::Linear>(plan.ops[1].body);
  ASSERT_TRUE(linear.rope_kv.has_value());
  EXPECT_EQ(linear.out, linear.rope_kv->out);

  const Kinds apart = {"quantize", "linear", "rope_kv"};
  EXPECT_EQ(kinds(plan_of({.norm = {.eps = 1e-5F, .values = true}})), apart);
  EXPECT_EQ(kinds(plan_of({.clip = 2.0F})), apart);
  EXPECT_EQ(kinds(plan_of({}, ValueId{})), apart);
  EXPECT_EQ(kinds(plan_of({}, {}, true)), kinds(plan));
  EXPECT_EQ(kinds(plan_of({}, {}, true, 10)), apart);
  EXPECT_EQ(kinds(plan_of({.norm = {.after_rope = true}}, {}, true)), apart);
}

TEST(Fuse, LayerNormsAndActivationsQuantizeButStayApart) {
  Chain norm(KernelClass::decode);
  const ValueId sum = norm.linear(norm.quantize(norm.b.input("x", kWidth)), kWidth);
  const ValueId normed = norm.quantize(norm.layer_norm(sum));
  norm.linear(normed, 8);
  plan::Plan plan = fused(norm.b.result());
  ASSERT_EQ(kinds(plan), (Kinds{"quantize", "linear", "norm", "linear"}));
  const auto& layer = std::get<plan::Norm>(plan.ops[2].body);
  EXPECT_EQ(layer.out, normed);
  EXPECT_EQ(layer.kind, plan::NormKind::layer);
  EXPECT_TRUE(layer.bias.has_value());
  EXPECT_EQ(plan[normed].type, ValueType::q8);
  EXPECT_FALSE(std::get<plan::Linear>(plan.ops[1].body).norm.has_value());
  EXPECT_FALSE(std::get<plan::Linear>(plan.ops[3].body).x_norm_eps.has_value());

  Chain act(KernelClass::decode);
  const ValueId up = act.linear(act.quantize(act.b.input("x", kWidth)), 2 * kWidth);
  const ValueId active = act.quantize(act.activate(up));
  act.linear(active, 8);
  plan = fused(act.b.result());
  ASSERT_EQ(kinds(plan), (Kinds{"quantize", "linear", "activate", "linear"}));
  EXPECT_EQ(std::get<plan::Activate>(plan.ops[2].body).out, active);
}

TEST(Fuse, KeptValuesAndPartsAndGroupsStayApart) {
  Chain c(KernelClass::decode);
  const ValueId sum = c.linear(c.quantize(c.b.input("x", kWidth)), kWidth);
  const ValueId norm = c.norm(sum);
  const ValueId normed = c.quantize(norm);
  c.linear(normed, 8);
  const Kinds norm_apart = {"quantize", "linear", "norm", "linear"};
  EXPECT_EQ(kinds(fused(c.b.result(), {norm})), norm_apart);
  EXPECT_EQ(kinds(fused(c.b.result(), {normed})), norm_apart);
  EXPECT_EQ(kinds(fused(c.b.result(), {}, {}, 2)), norm_apart);

  Chain grouped(KernelClass::decode);
  const ValueId x = grouped.linear(grouped.quantize(grouped.b.input("x", kWidth)), kWidth);
  grouped.linear(grouped.quantize(grouped.norm(x, kWidth / 2)), 8);
  EXPECT_EQ(kinds(fused(grouped.b.result())),
            (Kinds{"quantize", "linear", "norm", "quantize", "linear"}));

  Chain read_twice(KernelClass::decode);
  const ValueId y =
      read_twice.linear(read_twice.quantize(read_twice.b.input("x", kWidth)), 2 * kWidth);
  read_twice.linear(read_twice.quantize(read_twice.glu(y)), 8);
  read_twice.linear(y, 8);
  EXPECT_EQ(kinds(fused(read_twice.b.result())),
            (Kinds{"quantize", "linear", "glu", "linear", "linear"}));
}

TEST(Fuse, ANormThatOthersReadStaysApart) {
  Chain c(KernelClass::decode);
  const ValueId normed = c.quantize(c.norm(c.linear(c.quantize(c.b.input("x", kWidth)), kWidth)));
  c.linear(normed, 8);
  c.experts(normed, normed);
  plan::Plan plan = fused(c.b.result());
  EXPECT_EQ(kinds(plan),
            (Kinds{"quantize", "linear", "norm", "linear", "linear", "route", "expert_linear"}));
  EXPECT_EQ(std::get<plan::Norm>(plan.ops[2].body).out, normed);
  EXPECT_EQ(plan[normed].type, ValueType::q8);
  EXPECT_FALSE(std::get<plan::Linear>(plan.ops[3].body).x_norm_eps.has_value());

  // A router in f32 reads the norm itself, which has two results then.
  Chain router(KernelClass::decode);
  const ValueId norm =
      router.norm(router.linear(router.quantize(router.b.input("x", kWidth)), kWidth));
  const ValueId q8 = router.quantize(norm);
  router.experts(q8, norm);
  plan = fused(router.b.result());
  EXPECT_EQ(kinds(plan), (Kinds{"quantize", "linear", "norm", "linear", "route", "expert_linear"}));
  EXPECT_EQ(std::get<plan::Norm>(plan.ops[2].body).quantized, q8);
  EXPECT_EQ(plan[norm].type, ValueType::f32);
  EXPECT_EQ(plan[q8].type, ValueType::q8);
}

TEST(Fuse, ANormGoesIntoTheSumOfExpertsBeforeIt) {
  Chain c(KernelClass::decode);
  const ValueId routes = c.b.input("routes", 2);
  const ValueId sum = c.b.value("sum", kWidth);
  c.b.op(plan::Combine{.x = c.b.input("x", kWidth), .routes = routes, .out = sum});
  const ValueId normed = c.quantize(c.norm(sum));
  c.linear(normed, 8);
  const plan::Plan plan = fused(c.b.result());
  ASSERT_EQ(kinds(plan), (Kinds{"combine", "linear"}));
  const auto& combine = std::get<plan::Combine>(plan.ops[0].body);
  ASSERT_TRUE(combine.norm.has_value());
  EXPECT_EQ(combine.norm->out, normed);
  EXPECT_EQ(plan[normed].type, ValueType::q8_rms);
  EXPECT_TRUE(std::get<plan::Linear>(plan.ops[1].body).x_norm_eps.has_value());
}

TEST(Fuse, GlusThatAreNotPlainAndGatesQuantizeButStayApart) {
  for (const plan::Glu& numbers : {plan::Glu{.groups = 2}, plan::Glu{.alpha = 1.5F},
                                   plan::Glu{.limit = 7.0F}, plan::Glu{.up_offset = 1.0F}}) {
    Chain c(KernelClass::decode);
    const ValueId x = c.linear(c.quantize(c.b.input("x", kWidth)), 2 * kWidth);
    const ValueId gated = c.quantize(c.glu(x, numbers));
    c.linear(gated, 8);
    const plan::Plan plan = fused(c.b.result());
    ASSERT_EQ(kinds(plan), (Kinds{"quantize", "linear", "glu", "linear"}));
    EXPECT_EQ(std::get<plan::Glu>(plan.ops[2].body).out, gated);
    EXPECT_FALSE(std::get<plan::Linear>(plan.ops[1].body).glu.has_value());
  }
  Chain c(KernelClass::decode);
  const ValueId gated = c.quantize(c.gate(c.linear(c.quantize(c.b.input("x", kWidth)), kWidth)));
  c.linear(gated, 8);
  const plan::Plan plan = fused(c.b.result());
  ASSERT_EQ(kinds(plan), (Kinds{"quantize", "linear", "gate", "linear"}));
  EXPECT_EQ(std::get<plan::Gate>(plan.ops[2].body).out, gated);
}

TEST(Fuse, ExpertsReadWholeNumbers) {
  Chain c(KernelClass::prefill);
  const ValueId gate = c.gate(c.b.input("x", kWidth));
  c.linear(gate, 8, true);
  EXPECT_EQ(fused(c.b.result(), {}, with_matrices())[gate].type, ValueType::f16);
  const ValueId router_x = c.b.input("router_x", kWidth);
  c.experts(gate, router_x);
  EXPECT_EQ(fused(c.b.result(), {}, with_matrices())[gate].type, ValueType::f32);
}

TEST(Fuse, MatricesReadHalves) {
  Chain c(KernelClass::prefill);
  const ValueId norm = c.norm(c.b.input("x", kWidth));
  const ValueId glu = c.glu(c.linear(norm, 2 * kWidth, true));
  c.linear(glu, 8, true);
  const ValueId layer_norm = c.layer_norm(c.b.input("y", kWidth));
  const ValueId act = c.activate(c.linear(layer_norm, kWidth, true));
  c.linear(act, 8, true);
  for (const ValueId id : {layer_norm, act}) {
    EXPECT_EQ(fused(c.b.result(), {}, with_matrices())[id].type, ValueType::f16);
    EXPECT_EQ(fused(c.b.result())[id].type, ValueType::f32);
  }
  const auto types = [&](const plan::Plan& plan) {
    return std::vector<ValueType>{plan[norm].type, plan[glu].type};
  };
  const gpu::Capabilities matrices = with_matrices();
  EXPECT_EQ(types(fused(c.b.result(), {}, matrices)),
            (std::vector<ValueType>{ValueType::f16, ValueType::f16}));
  EXPECT_EQ(types(fused(c.b.result(), {norm}, matrices)),
            (std::vector<ValueType>{ValueType::f32, ValueType::f16}));
  EXPECT_EQ(types(fused(c.b.result())), (std::vector<ValueType>{ValueType::f32, ValueType::f32}));
  Chain residual(KernelClass::prefill);
  const ValueId both = residual.norm(residual.b.input("x", kWidth));
  residual.linear(both, kWidth, true, both);
  EXPECT_EQ(fused(residual.b.result(), {}, matrices)[both].type, ValueType::f32);
  c.linear(norm, 8);  // in f32
  EXPECT_EQ(types(fused(c.b.result(), {}, matrices)),
            (std::vector<ValueType>{ValueType::f32, ValueType::f16}));
}

}  // namespace
}  // namespace wisp::backend::webgpu
