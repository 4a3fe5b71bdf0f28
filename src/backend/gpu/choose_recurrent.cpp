// Kernels of Conv, DeltaNet, Scan and Wkv, and of copies of states.
#include "backend/gpu/choose_common.h"

namespace wisp::backend::webgpu {
namespace {

constexpr uint32_t kWorkgroup = 64;

// Words from one row of an f32 table to the next.
uint32_t row_words(uint32_t cols) {
  return row_vectors(weight_layout(formats::DType::F32), cols) * 4;
}

// A part of a row that kernels read as vectors.
uint32_t vectors(uint32_t elements, std::string_view what) {
  if (elements % 4 != 0) {
    fail("{} {}: the webgpu backend expects a multiple of 4", what, elements);
  }
  return elements / 4;
}

// A kernel over the runs of a step, whose workgroups go on from a state.
KernelUse over_runs(std::string label, std::string file, uint32_t invocations,
                    plan::StateId state) {
  KernelUse use;
  use.spec = {.label = std::move(label), .file = std::move(file)};
  use.spec.workgroup_size = {invocations, 1, 1};
  use.spec.constants.emplace_back("LOGIT_ROWS", false);
  use.grid.y = GridY::runs;
  use.bindings = {{"step_info", Bound::step},
                  {"states", Bound::states, plan::index(state)},
                  {"runs", Bound::runs}};
  return use;
}

void bind(KernelUse& use, std::initializer_list<Binding> more) {
  use.bindings.insert(use.bindings.end(), more);
}

KernelUse conv(std::string label, std::string file, const plan::Conv& op, const ChooseContext& c) {
  const uint32_t channels = vectors(c.plan[op.out].width, "channels");
  KernelUse use = over_runs(std::move(label), std::move(file), kWorkgroup, op.state);
  auto& constants = use.spec.constants;
  constants.emplace_back("VECTORS", channels);
  constants.emplace_back("TAPS", weight(c, op.weight).rows);
  constants.emplace_back("BEFORE", weight(c, op.weight).rows - 1);
  constants.emplace_back("X_STRIDE4", value_stride(c.plan[op.x]) / 4);
  constants.emplace_back("X_OFFSET4", vectors(op.x_offset, "element"));
  constants.emplace_back("BIAS", op.bias.has_value());
  constants.emplace_back("ACTIVATED", op.activation.has_value());
  constants.emplace_back("ACTIVATION",
                         static_cast<uint32_t>(op.activation.value_or(plan::Activation::silu)));
  constants.emplace_back("IN_GATED", op.in_gate.has_value());
  constants.emplace_back("IN_GATE4", vectors(op.in_gate.value_or(0), "element"));
  constants.emplace_back("OUT_GATED", op.out_gate.has_value());
  constants.emplace_back("OUT_GATE4", vectors(op.out_gate.value_or(0), "element"));
  use.grid.x = div_up(channels, kWorkgroup);
  bind(use, {value_binding("x", op.x),
             table_binding(c, "conv_weight", op.weight),
             table_binding(c, "conv_bias", op.bias),
             {"columns", Bound::columns}});
  return use;
}

void add_results(KernelUse& use, const plan::Conv& op, const ChooseContext& c) {
  if (plan::is_q8(c.plan[op.out].type)) add_reduce(use.spec, c.capabilities, 8);
  add_out(use, c, op.out);
}

// What delta_net/chunks takes of workgroup memory for chunks of `chunk` columns, `part` vectors
// wide.
uint32_t chunk_bytes(uint32_t key_dim, uint32_t chunk, uint32_t part, uint32_t invocations) {
  const uint32_t vectors =
      2 * chunk * (key_dim / 4 + 1) + key_dim * part + invocations + chunk * part;
  return vectors * 16 + 2 * chunk * chunk * 4 + 3 * chunk * 4;
}

}  // namespace

std::vector<KernelUse> choose_op(const plan::Conv& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c) {
  if (kernel_class == plan::KernelClass::decode) {
    KernelUse run = conv("conv", "conv/run.wgsl", op, c);
    add_results(run, op, c);
    return {std::move(run)};
  }
  KernelUse columns = conv("conv", "conv/columns.wgsl", op, c);
  columns.grid.y = GridY::rows;
  add_results(columns, op, c);
  KernelUse state = conv("conv state", "conv/state.wgsl", op, c);
  return {std::move(columns), std::move(state)};
}

std::vector<KernelUse> choose_op(const plan::DeltaNet& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c) {
  constexpr uint32_t kInvocations = 256;
  const uint32_t values = vectors(op.value_dim, "value_dim");
  const bool chunks = kernel_class == plan::KernelClass::prefill && op.key_dim % 4 == 0;
  // Vectors of a head's values in a workgroup: few, so that one sequence fills the device.
  uint32_t part = std::min(8U, std::bit_ceil(values));
  uint32_t chunk = 16;
  if (chunks) {
    part = std::min(op.key_dim > 128 ? 2U : 4U, part);
    const uint32_t reduce = has_shuffles(c.capabilities) ? 0 : kInvocations * 4;
    const uint32_t most = std::min(c.capabilities.workgroup_memory, 32768U);
    if (chunk_bytes(op.key_dim, chunk, part, kInvocations) + reduce > most) chunk = 8;
  }
  const uint32_t parts = div_up(values, part);
  KernelUse use = over_runs("delta_net", chunks ? "delta_net/chunks.wgsl" : "delta_net/run.wgsl",
                            kInvocations, op.state);
  add_reduce(use.spec, c.capabilities, team_size(c.capabilities, 32));
  auto& constants = use.spec.constants;
  constants.emplace_back("HEADS", op.num_heads);
  constants.emplace_back("KEY_HEADS", op.num_key_heads);
  constants.emplace_back("TILED", op.tiled);
  constants.emplace_back("KEY_DIM", op.key_dim);
  constants.emplace_back("VALUE_DIM", op.value_dim);
  constants.emplace_back("PART", part);
  constants.emplace_back("PARTS", parts);
  if (chunks) {
    constants.emplace_back("CHUNK", chunk);
    constants.emplace_back("X_STRIDE4", value_stride(c.plan[op.x]) / 4);
  } else {
    constants.emplace_back("ROWS_EACH", div_up(op.key_dim, kInvocations / part));
    constants.emplace_back("X_STRIDE", value_stride(c.plan[op.x]));
  }
  constants.emplace_back("GATES_STRIDE", value_stride(c.plan[op.gates]));
  constants.emplace_back("GATES_OFFSET", op.gates_offset);
  constants.emplace_back("OUT_STRIDE4", value_stride(c.plan[op.out]) / 4);
  use.grid.x = op.num_heads * parts;
  bind(use,
       {value_binding("out", op.out), value_binding("x", op.x), value_binding("gates", op.gates),
        table_binding(c, "rate", op.rate), table_binding(c, "dt_bias", op.dt_bias)});
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Scan& op, plan::KernelClass, const ChooseContext& c) {
  constexpr uint32_t kInvocations = 128;
  const uint32_t channels = c.plan[op.out].width;
  constexpr uint32_t kTeam = 8;  // 16 or 32 were no faster on an H200
  KernelUse use = over_runs("scan", "scan/run.wgsl", kInvocations, op.state);
  add_reduce(use.spec, c.capabilities, kTeam);
  auto& constants = use.spec.constants;
  constants.emplace_back("CHANNELS", channels);
  constants.emplace_back("HEADS", op.num_heads);
  constants.emplace_back("GROUPS", op.num_groups);
  constants.emplace_back("STATE_SIZE", op.state_size);
  constants.emplace_back("EACH", div_up(op.state_size, kTeam));
  constants.emplace_back("STATE_STRIDE", state_stride(channels * op.state_size));
  constants.emplace_back("ONE_RATE", weight(c, op.rate).cols == 1);
  constants.emplace_back("RATE_STRIDE", row_words(weight(c, op.rate).cols));
  constants.emplace_back("X_STRIDE", value_stride(c.plan[op.x]));
  constants.emplace_back("DT_STRIDE", value_stride(c.plan[op.dt]));
  constants.emplace_back("DT_OFFSET", op.dt_offset);
  constants.emplace_back("BC_STRIDE", value_stride(c.plan[op.bc]));
  constants.emplace_back("B_OFFSET", op.b_offset);
  constants.emplace_back("C_OFFSET", op.c_offset);
  constants.emplace_back("OUT_STRIDE", value_stride(c.plan[op.out]));
  constants.emplace_back("DT_MIN", op.dt_min);
  constants.emplace_back("DT_MAX", std::min(op.dt_max, std::numeric_limits<float>::max()));
  use.grid.x = div_up(channels, kInvocations / kTeam);
  bind(use, {value_binding("out", op.out), value_binding("x", op.x), value_binding("dt", op.dt),
             value_binding("bc", op.bc), table_binding(c, "rate", op.rate),
             table_binding(c, "dt_bias", op.dt_bias), table_binding(c, "skip", op.skip)});
  return {std::move(use)};
}

std::vector<KernelUse> choose_op(const plan::Wkv& op, plan::KernelClass, const ChooseContext& c) {
  const uint32_t channels = c.plan[op.out].width;
  KernelUse use = over_runs("wkv", "wkv.wgsl", kWorkgroup, op.state);
  auto& constants = use.spec.constants;
  constants.emplace_back("CHANNELS", channels);
  constants.emplace_back("STRIDE", value_stride(c.plan[op.out]));
  constants.emplace_back("STATE_STRIDE", state_stride(3 * channels));
  use.grid.x = div_up(channels, kWorkgroup);
  bind(use, {value_binding("out", op.out), value_binding("k", op.k), value_binding("v", op.v),
             table_binding(c, "rate", op.rate), table_binding(c, "first", op.first)});
  return {std::move(use)};
}

KernelUse choose_state_copy(plan::StateId id, const plan::Resources& resources) {
  const uint32_t row = state_stride(resources.states[plan::index(id)].width) / 4;
  KernelUse use;
  use.spec = {.label = "state copy", .file = "state/copy.wgsl"};
  use.spec.workgroup_size = {kWorkgroup, 1, 1};
  use.spec.constants.emplace_back("VECTORS", row);
  use.grid.x = div_up(row, kWorkgroup);
  use.grid.y = GridY::state_copies;
  use.when.min_copies = 1;
  use.bindings = {{"states", Bound::states, plan::index(id)},
                  {"state_copies", Bound::state_copies}};
  return use;
}

}  // namespace wisp::backend::webgpu
