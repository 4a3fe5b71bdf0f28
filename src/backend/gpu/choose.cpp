#include "backend/gpu/choose.h"

#include "backend/gpu/choose_common.h"

namespace wisp::backend::webgpu {
namespace {

constexpr uint32_t kPointwise = 64;  // invocations of a workgroup of a pointwise kernel

KernelUse pointwise(std::string label, std::string file, bool logits, uint32_t vectors) {
  KernelUse use;
  use.spec = {.label = std::move(label), .file = std::move(file)};
  use.spec.workgroup_size = {kPointwise, 1, 1};
  use.spec.constants.emplace_back("LOGIT_ROWS", logits);
  use.grid.x = div_up(vectors, kPointwise);
  use.bindings.push_back({"step_info", Bound::step});
  return use;
}

// A pointwise kernel whose results may be f32, f16 or q8 rows.
KernelUse elementwise(std::string label, std::string file, plan::ValueId x, plan::ValueId out,
                      const ChooseContext& c) {
  const plan::Value& value = c.plan[out];
  KernelUse use =
      pointwise(std::move(label), std::move(file), logit_rows(c, out), div_up(value.width, 4));
  if (plan::is_q8(value.type)) add_reduce(use.spec, c.capabilities, 8);
  add_out(use, c, out);
  use.bindings.push_back(value_binding("x", x));
  return use;
}

std::vector<KernelUse> choose_op(const plan::Embed& op, plan::KernelClass, const ChooseContext& c) {
  const plan::Weight& table = weight(c, op.table);
  std::vector<KernelUse> uses;
  const DeviceWeight& parts = c.weights[plan::index(op.table)];
  for (uint32_t part = 0; part < parts.size(); ++part) {
    KernelUse use = pointwise("embed", "embed.wgsl", false, div_up(table.cols, 32));
    add_codec(use.spec, c, table);
    use.spec.constants.emplace_back("ROWS", parts[part].rows);
    use.spec.constants.emplace_back("FIRST_ROW", parts[part].first_row);
    use.spec.constants.emplace_back("OUT_STRIDE4", value_stride(c.plan[op.out]) / 4);
    use.spec.constants.emplace_back("SCALE", op.scale);
    use.spec.constants.emplace_back("POSITIONS", op.positions.has_value());
    use.bindings.push_back(value_binding("out", op.out));
    use.bindings.push_back({"weights", Bound::weight_data, plan::index(op.table), part});
    use.bindings.push_back({"weight_side", Bound::weight_side, plan::index(op.table), part});
    use.bindings.push_back({"columns", Bound::columns});
    use.bindings.push_back({"last_tokens", Bound::last_tokens});
    use.bindings.push_back(table_binding(c, "positions", op.positions));
    uses.push_back(std::move(use));
  }
  return uses;
}

std::vector<KernelUse> choose_op(const plan::Norm& op, plan::KernelClass, const ChooseContext& c) {
  const plan::Value& x = c.plan[op.x];
  if (op.group != x.width && op.group % 4 != 0) {
    fail("groups of {} elements are not supported by the webgpu backend", op.group);
  }
  KernelUse use = pointwise("norm", "norm.wgsl", logit_rows(c, op.out), 1);
  use.grid.x = x.width / op.group;
  const uint32_t invocations = std::clamp(std::bit_ceil(op.group / 4), 32U, 256U);
  use.spec.workgroup_size = {invocations, 1, 1};
  add_reduce(use.spec, c.capabilities, team_size(c.capabilities, 32));
  add_out(use, c, op.out, op.quantized);
  use.spec.constants.emplace_back("COLS", x.width);
  use.spec.constants.emplace_back("X_STRIDE4", value_stride(x) / 4);
  use.spec.constants.emplace_back("F16_INPUTS", false);
  use.spec.constants.emplace_back("GROUP", op.group);
  use.spec.constants.emplace_back("LAYER", op.kind == plan::NormKind::layer);
  use.spec.constants.emplace_back("EPS", op.eps);
  use.spec.constants.emplace_back("WEIGHT", op.weight.has_value());
  use.spec.constants.emplace_back("WEIGHT_OFFSET", op.weight_offset);
  use.spec.constants.emplace_back("BIAS", op.bias.has_value());
  const auto& vector = op.weight ? op.weight : op.bias;
  const bool own = vector && weight(c, *vector).cols > op.group;
  use.spec.constants.emplace_back("WEIGHT_STRIDE4", own ? op.group / 4 : 0U);
  use.bindings.push_back(value_binding("x", op.x));
  use.bindings.push_back(table_binding(c, "norm_weight", op.weight));
  use.bindings.push_back(table_binding(c, "norm_bias", op.bias));
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Add& op, plan::KernelClass, const ChooseContext& c) {
  const uint32_t vectors = value_stride(c.plan[op.out]) / 4;
  KernelUse use = pointwise("add", "add.wgsl", logit_rows(c, op.out), vectors);
  const plan::Value& b = c.plan[op.b];
  if (b.width != c.plan[op.a].width && b.width % 4 != 0) {
    fail("parts of {} elements are not supported by the webgpu backend", b.width);
  }
  use.spec.constants.emplace_back("STRIDE4", vectors);
  use.spec.constants.emplace_back("B_STRIDE4", value_stride(b) / 4);
  use.spec.constants.emplace_back("SCALE", op.scale);
  use.spec.constants.emplace_back("OUT_SCALE", op.out_scale);
  use.bindings.push_back(value_binding("out", op.out));
  use.bindings.push_back(value_binding("a", op.a));
  use.bindings.push_back(value_binding("b", op.b));
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Quantize& op, plan::KernelClass,
                                 const ChooseContext& c) {
  const plan::Value& x = c.plan[op.x];
  KernelUse use = pointwise("quantize", "quantize.wgsl", logit_rows(c, op.out), x.width / 4);
  add_reduce(use.spec, c.capabilities, 8);
  add_out(use, c, op.out);
  use.spec.constants.emplace_back("COLS", x.width);
  use.spec.constants.emplace_back("X_STRIDE4", value_stride(x) / 4);
  use.spec.constants.emplace_back("F16_INPUTS", false);
  use.bindings.push_back(value_binding("x", op.x));
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Glu& op, plan::KernelClass, const ChooseContext& c) {
  const plan::Value& out = c.plan[op.out];
  KernelUse use = elementwise("glu", op.cutoff ? "glu_cut.wgsl" : "glu.wgsl", op.x, op.out, c);
  if (op.cutoff) {
    if (op.groups != 1) fail("cut gates of {} groups are not supported", op.groups);
    use.spec.workgroup_size = {256, 1, 1};
    if (!plan::is_q8(out.type)) add_reduce(use.spec, c.capabilities, 8);
    use.spec.constants.emplace_back("CUTOFF", *op.cutoff);
    use.grid.x = 1;
  }
  use.spec.constants.emplace_back("WIDTH", out.width);
  use.spec.constants.emplace_back("GROUP", out.width / op.groups);
  use.spec.constants.emplace_back("X_STRIDE", value_stride(c.plan[op.x]));
  use.spec.constants.emplace_back("ACTIVATION", static_cast<uint32_t>(op.activation));
  const bool silu = op.activation == plan::Activation::silu;
  use.spec.constants.emplace_back("ALPHA", silu ? op.alpha : 1.0F);
  use.spec.constants.emplace_back("LIMIT", op.limit);
  use.spec.constants.emplace_back("UP_OFFSET", op.up_offset);
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Activate& op, plan::KernelClass,
                                 const ChooseContext& c) {
  KernelUse use = elementwise("activate", "activate.wgsl", op.x, op.out, c);
  use.spec.constants.emplace_back("VECTORS", div_up(c.plan[op.out].width, 4));
  use.spec.constants.emplace_back("X_STRIDE4", value_stride(c.plan[op.x]) / 4);
  use.spec.constants.emplace_back("ACTIVATION", static_cast<uint32_t>(op.activation));
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Gate& op, plan::KernelClass, const ChooseContext& c) {
  const plan::Value& gate = c.plan[op.gate];
  for (const uint32_t offset : {op.x_offset, op.gate_offset}) {
    if (offset % 4 == 0) continue;
    fail("element {} is not supported by the webgpu backend: expected a multiple of 4", offset);
  }
  KernelUse use = elementwise("gate", "gate.wgsl", op.x, op.out, c);
  use.spec.constants.emplace_back("VECTORS", div_up(c.plan[op.out].width, 4));
  use.spec.constants.emplace_back("X_STRIDE4", value_stride(c.plan[op.x]) / 4);
  use.spec.constants.emplace_back("X_OFFSET4", op.x_offset / 4);
  use.spec.constants.emplace_back("ACTIVATION", static_cast<uint32_t>(op.activation));
  use.spec.constants.emplace_back("GATE_STRIDE4", value_stride(gate) / 4);
  use.spec.constants.emplace_back("GATE_OFFSET4", op.gate_offset / 4);
  use.spec.constants.emplace_back("ROW_GATE", gate.width == 1);
  use.bindings.push_back(value_binding("gate", op.gate));
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Softcap& op, plan::KernelClass,
                                 const ChooseContext& c) {
  const uint32_t vectors = value_stride(c.plan[op.out]) / 4;
  KernelUse use = pointwise("softcap", "softcap.wgsl", logit_rows(c, op.out), vectors);
  use.spec.constants.emplace_back("STRIDE4", vectors);
  use.spec.constants.emplace_back("CAP", op.cap);
  use.bindings.push_back(value_binding("out", op.out));
  use.bindings.push_back(value_binding("x", op.x));
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::SelectLogits& op, plan::KernelClass,
                                 const ChooseContext& c) {
  const uint32_t vectors = value_stride(c.plan[op.out]) / 4;
  KernelUse use = pointwise("select_logits", "select.wgsl", true, vectors);
  use.spec.constants.emplace_back("STRIDE4", vectors);
  use.bindings.push_back(value_binding("out", op.out));
  use.bindings.push_back(value_binding("x", op.x));
  use.bindings.push_back({"logit_columns", Bound::logit_columns});
  return {std::move(use)};
}

}  // namespace

// What the kernels with matrices are written for; they take up to 46,080 bytes of workgroup memory.
bool has_matrices(const gpu::Capabilities& c) {
  return c.f16 && c.workgroup_memory >= 46080 && c.subgroups &&
         c.has_matrix({.m = 16, .n = 16, .k = 16}) && c.subgroup_min_size == 32 &&
         c.subgroup_max_size == 32;
}

void add_codec(gpu::KernelSpec& spec, const ChooseContext& c, const plan::Weight& weight) {
  const formats::DTypeInfo& info = formats::dtype_info(weight.dtype);
  if (info.wgsl_codec.empty()) fail("weights of type {} have no kernels", info.name);
  spec.label += fmt::format(" {}", info.name);
  spec.includes.emplace_back(c.capabilities.packed_dot ? "lib/dot_native.wgsl"
                                                       : "lib/dot_emulated.wgsl");
  spec.includes.emplace_back(info.wgsl_codec);
  if (has_group_scales(weight.dtype)) spec.includes.emplace_back(kScalePairs);
  const WeightLayout layout = weight_layout(weight.dtype);
  spec.constants.emplace_back("COLS", weight.cols);
  spec.constants.emplace_back("GROUPS", div_up(weight.cols, 32));
  spec.constants.emplace_back("ROW_VECTORS", row_vectors(layout, weight.cols));
}

std::vector<KernelUse> choose(const plan::Op& op, const ChooseContext& context) {
  return std::visit([&](const auto& body) { return choose_op(body, op.kernel_class, context); },
                    op.body);
}

}  // namespace wisp::backend::webgpu
