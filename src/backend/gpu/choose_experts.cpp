// Kernels of Route, ExpertLinear and Combine.
#include "backend/gpu/choose_common.h"

namespace wisp::backend::webgpu {
namespace {

Binding routes_binding(const plan::ExpertLinear& op) {
  return op.routes ? value_binding("routes", *op.routes) : Binding{"routes", Bound::unused};
}

void add_routes(KernelUse& use, const plan::ExpertLinear& op, const ChooseContext& c) {
  use.spec.constants.emplace_back("ROUTED", op.routes.has_value());
  use.spec.constants.emplace_back("ROUTES_STRIDE",
                                  op.routes ? value_stride(c.plan[*op.routes]) : 0U);
}

// What all variants of an ExpertLinear share.
KernelUse base(const plan::ExpertLinear& op, uint32_t part_index, const ChooseContext& c) {
  const plan::Weight& w = weight(c, op.weight);
  const WeightPart& part = c.weights[plan::index(op.weight)][part_index];
  const plan::Value& x = c.plan[op.x];
  const uint32_t rows = w.rows / op.num_experts;
  KernelUse use;
  use.spec.label = "expert_linear";
  add_codec(use.spec, c, w);
  use.spec.label += fmt::format(" {}x{}", rows, w.cols);
  auto& constants = use.spec.constants;
  constants.emplace_back("LOGIT_ROWS", logit_rows(c, op.out));
  constants.emplace_back("ROWS", part.rows);
  constants.emplace_back("FIRST_ROW", part.first_row);
  constants.emplace_back("EXPERT_ROWS", rows);
  constants.emplace_back("TOP_K", op.top_k);
  constants.emplace_back("OUT_STRIDE", value_stride(c.plan[op.out]));
  add_routes(use, op, c);
  constants.emplace_back("BIAS", op.bias.has_value());
  // From the x of one chosen expert of a column to that of the next.
  constants.emplace_back("X_SLOT", x.width > w.cols ? w.cols : 0U);
  use.bindings = {{"step_info", Bound::step},
                  value_binding("out", op.out),
                  {"weights", Bound::weight_data, plan::index(op.weight), part_index},
                  {"weight_side", Bound::weight_side, plan::index(op.weight), part_index},
                  table_binding(c, "bias", op.bias),
                  routes_binding(op),
                  value_binding("x", op.x)};
  return use;
}

// Items of one expert that a workgroup takes, rows of a team, invocations where the device has so
// many, groups loaded at a time, and the steps that take it. Tiles change no bits.
struct Tile {
  uint32_t items = 1;
  uint32_t team_rows = 1;
  uint32_t invocations = 128;
  uint32_t unroll = 1;
  Condition when;
};

// Items are sorted by expert where there are more of them than experts.
std::vector<Tile> tiles(const plan::ExpertLinear& op, const ChooseContext& c) {
  const uint32_t grouped = std::max(2U, div_up(op.num_experts, op.top_k));
  Tile direct = {.when = {.max_rows = grouped - 1}};
  Tile few = {.items = kLeastItemTile, .team_rows = 2, .when = {.min_rows = grouped}};
  if (plan::is_q8(c.plan[op.x].type)) {
    direct.invocations = 1024;
    direct.unroll = 2;
    few.invocations = 256;
    few.when.max_rows = 4 * grouped - 1;
    Tile many = few;
    many.items = 8;
    many.when = {.min_rows = 4 * grouped};
    return {direct, few, many};
  }
  if (const uint32_t rows = weight(c, op.weight).rows / op.num_experts; rows >= 2048) {
    direct.team_rows = 2;
    direct.invocations = rows < 4096 ? 128 : 256;
  }
  return {direct, few};
}

// Cooperative matrices: tiles by the items that an expert has of a step on average.
std::vector<Tile> matrix_tiles(const plan::ExpertLinear& op) {
  const auto rows = [&](uint32_t items) { return div_up(op.num_experts * items, op.top_k); };
  return {{.items = 32, .when = {.max_rows = rows(24)}},
          {.items = 64, .when = {.min_rows = rows(24) + 1, .max_rows = rows(64)}},
          {.items = 128, .when = {.min_rows = rows(64) + 1}}};
}

// Tiles of items that `group` made.
void add_grouped(KernelUse& use, const plan::ExpertLinear& op, const Tile& tile) {
  use.spec.includes.emplace_back("experts/grouped.wgsl");
  use.bindings.push_back({"expert_tiles", Bound::expert_tiles});
  use.bindings.push_back({"expert_items", Bound::expert_items});
  use.grid.rows_per_y = tile.items;
  use.grid.row_items = op.top_k;
  use.grid.more_y = op.num_experts;
}

void finish_matrix(KernelUse& use, const plan::ExpertLinear& op, const Tile& tile,
                   const ChooseContext& c) {
  const plan::Weight& w = weight(c, op.weight);
  const plan::Value& x = c.plan[op.x];
  const uint32_t item_rows = x.width > w.cols ? op.top_k : 1;
  const uint32_t stride = item_rows > 1 ? w.cols : x.width;  // 32 divides both
  use.spec.label += fmt::format(" tile {}", tile.items);
  set_matrix_tile(use, c, op.weight, op.x, tile.items);
  use.spec.includes.emplace_back("experts/matrix_columns.wgsl");
  auto& constants = use.spec.constants;
  constants.emplace_back("ITEM_ROWS", item_rows);
  constants.emplace_back("X_STRIDE4", stride / 4);
  constants.emplace_back("F16_INPUTS", false);  // the kernel rounds by itself
  use.grid.x = div_up(w.rows / op.num_experts, 128);
  use.when = tile.when;
  add_grouped(use, op, tile);
}

void finish(KernelUse& use, const plan::ExpertLinear& op, const Tile& tile,
            const ChooseContext& c) {
  const plan::Weight& w = weight(c, op.weight);
  const plan::Value& x = c.plan[op.x];
  const uint32_t rows = w.rows / op.num_experts;
  const uint32_t team = team_size(c.capabilities, div_up(w.cols, 32));
  auto& constants = use.spec.constants;
  if (plan::is_q8(x.type)) {
    use.spec.file = "experts/linear_q8.wgsl";
    constants.emplace_back("UNROLL", tile.unroll);
    constants.emplace_back("X_STRIDE4", value_stride(x) / 4);
    constants.emplace_back("X_WIDTH", x.width);
    constants.emplace_back("X_RMS", false);
  } else {
    use.spec.file = "experts/linear_f32.wgsl";
    constants.emplace_back("X_STRIDE", value_stride(x));
    constants.emplace_back("F16_INPUTS", op.f16_inputs);
  }
  // A team has at least one row.
  const uint32_t invocations =
      std::max(team, std::min({tile.invocations, std::bit_floor(c.capabilities.max_invocations),
                               std::bit_ceil(div_up(rows, tile.team_rows)) * team}));
  use.spec.workgroup_size = {invocations, 1, 1};
  add_reduce(use.spec, c.capabilities, team);
  use.spec.label += fmt::format(" k={}", tile.items);
  constants.emplace_back("TEAM_ROWS", tile.team_rows);
  constants.emplace_back("COL_TILE", tile.items);
  use.grid.x = div_up(rows, invocations / team * tile.team_rows);
  use.when = tile.when;
  if (tile.items == 1) {
    use.spec.includes.emplace_back("experts/direct.wgsl");
    use.grid.z = op.top_k;
  } else {
    add_grouped(use, op, tile);
  }
}

// Makes the tiles of a step.
KernelUse group(const plan::ExpertLinear& op, const Tile& tile, const ChooseContext& c) {
  KernelUse use;
  use.spec = {.label = "group experts", .file = "experts/group.wgsl"};
  use.spec.workgroup_size = {256, 1, 1};
  auto& constants = use.spec.constants;
  constants.emplace_back("LOGIT_ROWS", logit_rows(c, op.out));
  constants.emplace_back("EXPERTS", op.num_experts);
  constants.emplace_back("TOP_K", op.top_k);
  add_routes(use, op, c);
  constants.emplace_back("ITEM_TILE", tile.items);
  use.bindings = {{"step_info", Bound::step},
                  {"expert_tiles", Bound::expert_tiles},
                  {"expert_items", Bound::expert_items},
                  routes_binding(op)};
  use.grid.rows_per_y = most_rows(c, op.out);
  use.when = tile.when;
  return use;
}

}  // namespace

std::vector<KernelUse> choose_op(const plan::Route& op, plan::KernelClass, const ChooseContext& c) {
  const uint32_t experts = c.plan[op.logits].width;
  if (experts > 4096 || op.top_k > 64 || op.num_groups > 1024) {
    fail("{} of {} experts in {} groups: the webgpu backend chooses up to 64 of 4096, in 1024",
         op.top_k, experts, op.num_groups);
  }
  KernelUse use;
  use.spec = {.label = "route", .file = "experts/route.wgsl"};
  // An octet for each expert, if there may be so many.
  const uint32_t most = std::min(1024U, std::bit_floor(c.capabilities.max_invocations));
  use.spec.workgroup_size = {std::clamp(std::bit_ceil(experts) * 8, 64U, most), 1, 1};
  add_reduce(use.spec, c.capabilities, team_size(c.capabilities, 32));
  auto& constants = use.spec.constants;
  constants.emplace_back("LOGIT_ROWS", logit_rows(c, op.out));
  constants.emplace_back("EXPERTS", experts);
  constants.emplace_back("TOP_K", op.top_k);
  constants.emplace_back("LOGITS_STRIDE", value_stride(c.plan[op.logits]));
  constants.emplace_back("OUT_STRIDE", value_stride(c.plan[op.out]));
  constants.emplace_back("SOFTMAX", op.score == plan::RouterScore::softmax);
  constants.emplace_back("BIAS", op.bias.has_value());
  constants.emplace_back("NUM_GROUPS", op.num_groups);
  constants.emplace_back("TOP_GROUPS", op.top_groups);
  constants.emplace_back("BEST_TWO", op.group_score == plan::GroupScore::best_two);
  constants.emplace_back("NORMALISE", op.normalise);
  constants.emplace_back("SCALE", op.scale);
  constants.emplace_back("EXPERT_SCALES", op.expert_scales.has_value());
  use.bindings = {{"step_info", Bound::step},
                  value_binding("out", op.out),
                  value_binding("logits", op.logits),
                  table_binding(c, "bias", op.bias),
                  table_binding(c, "expert_scales", op.expert_scales)};
  use.grid.rows_per_y = 1;
  return {std::move(use)};
}

uint32_t max_expert_tiles(const plan::ExpertLinear& op, uint32_t rows) {
  return div_up(rows * op.top_k, kLeastItemTile) + op.num_experts;
}

bool takes_matrices(const plan::ExpertLinear& op, const plan::Resources& resources,
                    const gpu::Capabilities& capabilities) {
  return op.f16_inputs && has_matrices(capabilities) &&
         resources.weights[plan::index(op.weight)].cols % 32 == 0;
}

// A row of the weights may lie in any part of them. Cooperative matrices serve all steps of the
// prefill class or none; else both classes take the same kernels.
std::vector<KernelUse> choose_op(const plan::ExpertLinear& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c) {
  const bool matrices =
      kernel_class == plan::KernelClass::prefill && takes_matrices(op, c.resources, c.capabilities);
  std::vector<KernelUse> uses;
  const DeviceWeight& parts = c.weights[plan::index(op.weight)];
  for (const Tile& tile : matrices ? matrix_tiles(op) : tiles(op, c)) {
    if (tile.when.min_rows > most_rows(c, op.out)) continue;
    if (tile.items > 1) uses.push_back(group(op, tile, c));
    for (uint32_t part = 0; part < parts.size(); ++part) {
      KernelUse use = base(op, part, c);
      if (matrices) {
        finish_matrix(use, op, tile, c);
      } else {
        finish(use, op, tile, c);
      }
      uses.push_back(std::move(use));
    }
  }
  return uses;
}

std::vector<KernelUse> choose_op(const plan::Combine& op, plan::KernelClass,
                                 const ChooseContext& c) {
  const plan::Value& out = c.plan[op.out];
  KernelUse use;
  use.spec = {.label = "combine", .file = "experts/combine.wgsl"};
  use.spec.workgroup_size = {64, 1, 1};
  auto& constants = use.spec.constants;
  constants.emplace_back("LOGIT_ROWS", logit_rows(c, op.out));
  constants.emplace_back("WIDTH", out.width);
  constants.emplace_back("TOP_K", c.plan[op.routes].width / 2);
  constants.emplace_back("X_STRIDE", value_stride(c.plan[op.x]));
  constants.emplace_back("ROUTES_STRIDE", value_stride(c.plan[op.routes]));
  constants.emplace_back("OUT_STRIDE", value_stride(out));
  constants.emplace_back("SCALE", op.scale);
  constants.emplace_back("RESIDUAL", op.residual.has_value());
  use.bindings = {
      {"step_info", Bound::step},
      value_binding("out", op.out),
      value_binding("x", op.x),
      value_binding("routes", op.routes),
      op.residual ? value_binding("residual", *op.residual) : Binding{"residual", Bound::unused}};
  use.spec.includes.emplace_back(op.norm ? "experts/combined_norm.wgsl"
                                         : "experts/combined_f32.wgsl");
  if (op.norm) {
    use.spec.label += " norm";
    add_reduce(use.spec, c.capabilities, 8);
    add_norm_out(use, c, *op.norm);
  }
  use.grid.x = div_up(out.width, 4 * 64);
  use.grid.rows_per_y = 1;
  return {std::move(use)};
}

}  // namespace wisp::backend::webgpu
