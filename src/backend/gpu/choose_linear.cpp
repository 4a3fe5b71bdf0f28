// Kernels of Linear.
#include <numeric>

#include "backend/gpu/choose_common.h"

namespace wisp::backend::webgpu {
namespace {

// A column tile, the rows of the matrix that go with it (of a team in the decode class, of a
// workgroup in the prefill class) and the steps that take it.
struct Tile {
  uint32_t columns = 1;
  uint32_t rows = 1;
  Condition when;
};

constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();

// The same with q8 inputs: rows of a workgroup, its invocations where the device has so many,
// groups that one of them loads at a time. A workgroup has whole blocks of 32 results (pairs of
// rows with a GLU). Measured on an H200 (docs/performance.md); tiles change no bits.
struct Int8Tile {
  uint32_t columns = 1;
  uint32_t rows = 32;
  uint32_t invocations = 256;
  uint32_t unroll = 1;
  Condition when;
};
constexpr uint32_t kMostInvocations = 1024;
constexpr Int8Tile kInt8Tiles[] = {
    {1, 32, 1024, 2, {.min_rows = 1, .max_rows = 1}},
    {2, 32, 512, 1, {.min_rows = 2, .max_rows = 2}},
    {4, 32, 256, 1, {.min_rows = 3, .max_rows = 4}},
    {8, 32, 256, 1, {.min_rows = 5, .max_rows = kMost}},
};
constexpr Tile kFloatTiles[] = {
    {1, 2, {.min_rows = 1, .max_rows = 1}},
    {2, 2, {.min_rows = 2, .max_rows = 2}},
    {4, 1, {.min_rows = 3, .max_rows = kMost}},
};
constexpr Tile kPrefillTiles[] = {
    {32, 64, {.min_rows = 1, .max_rows = 32}},
    {64, 64, {.min_rows = 33, .max_rows = kMost}},
};
constexpr Tile kMatrixTiles[] = {
    {32, 128, {.min_rows = 1, .max_rows = 32}},
    {64, 128, {.min_rows = 33, .max_rows = 64}},
    {128, 128, {.min_rows = 65, .max_rows = kMost}},
};

// Whether cooperative matrices serve a Linear of the prefill class.
bool takes_matrices(const plan::Linear& op, const ChooseContext& c) {
  return op.f16_inputs && has_matrices(c.capabilities);
}

// What all variants of a Linear share.
KernelUse base(const plan::Linear& op, uint32_t part_index, bool matrices, const ChooseContext& c) {
  const plan::Weight& w = weight(c, op.weight);
  const WeightPart& part = c.weights[plan::index(op.weight)][part_index];
  KernelUse use;
  use.spec.label = "linear";
  add_codec(use.spec, c, w);
  use.spec.label += fmt::format(" {}x{}", w.rows, w.cols);
  auto& constants = use.spec.constants;
  constants.emplace_back("LOGIT_ROWS", logit_rows(c, op.out));
  constants.emplace_back("ROWS", part.rows);
  constants.emplace_back("FIRST_ROW", part.first_row);
  constants.emplace_back("OUT_OFFSET", op.out_offset);
  constants.emplace_back("OUT_STRIDE", value_stride(c.plan[op.out]));
  constants.emplace_back("SCALE", op.scale);
  constants.emplace_back("BIAS", op.bias.has_value());
  constants.emplace_back("RESIDUAL", op.residual.has_value());
  constants.emplace_back("RESIDUAL_STRIDE", op.residual ? value_stride(c.plan[*op.residual]) : 0U);
  use.bindings = {
      {"step_info", Bound::step},
      value_binding("out", op.out),
      {"weights", Bound::weight_data, plan::index(op.weight), part_index},
      {"weight_side", Bound::weight_side, plan::index(op.weight), part_index},
      table_binding(c, "bias", op.bias),
      op.residual ? value_binding("residual", *op.residual) : Binding{"residual", Bound::unused}};
  const plan::Value& x = c.plan[op.x];
  constants.emplace_back("X_STRIDE4", value_stride(x) / (x.type == plan::ValueType::f16 ? 2 : 4));
  constants.emplace_back("F16_INPUTS", op.f16_inputs && !matrices);  // those round by themselves
  use.bindings.push_back(value_binding("x", op.x));
  return use;
}

void set_tiles(KernelUse& use, uint32_t tiles) {
  use.grid.x = std::min(tiles, 32768U);
  use.grid.z = div_up(tiles, use.grid.x);
}

// What follows the sums of an int8 Linear.
void add_linear_out(KernelUse& use, const plan::Linear& op, const ChooseContext& c) {
  auto& constants = use.spec.constants;
  if (op.glu) {
    use.spec.label += " glu";
    use.spec.includes.emplace_back("linear_out/glu_q8.wgsl");
    constants.emplace_back("ACTIVATION", static_cast<uint32_t>(*op.glu));
    add_q8_out(use, c, op.out);
  } else if (op.rope_kv) {
    use.spec.label += " rope";
    use.spec.includes.emplace_back("linear_out/rope_kv.wgsl");
    add_kv(use, c, op.rope_kv->kv_layer, true);
    add_rope(use, c, op.rope_kv->rope, op.rope_kv->style);
    add_head_norms(use, c, *op.rope_kv);
    constants.emplace_back("HEADS", op.rope_kv->num_heads);
  } else if (op.norm) {
    use.spec.label += " norm";
    use.spec.includes.emplace_back("linear_out/norm_q8.wgsl");
    add_norm_out(use, c, *op.norm);
  } else {
    use.spec.includes.emplace_back("linear_out/f32.wgsl");
  }
}

// Rows of a tile: pairs of rows with a GLU, whole heads where they are normalised.
uint32_t tile_rows_of(const plan::Linear& op, const Int8Tile& tile, const ChooseContext& c) {
  if (op.glu) return std::max(64U, tile.rows);
  if (op.rope_kv && (op.rope_kv->q_norm || op.rope_kv->k_norm)) {
    const uint32_t head_dim = c.resources.kv_layers[plan::index(op.rope_kv->kv_layer)].head_dim;
    return std::lcm(head_dim, tile.rows);
  }
  return tile.rows;
}

void finish_int8(KernelUse& use, const plan::Linear& op, const Int8Tile& tile, uint32_t rows,
                 uint32_t cols, const ChooseContext& c) {
  const uint32_t team = team_size(c.capabilities, div_up(cols, 32));
  const bool wide = tile.columns == 8;
  const uint32_t tile_rows = tile_rows_of(op, tile, c);
  const uint32_t wide_rows = op.rope_kv && tile_rows % 64 == 0 ? 64 : tile.rows;
  const uint32_t pass_rows = wide ? wide_rows : tile_rows;
  const uint32_t wanted = op.rope_kv ? tile.invocations * pass_rows / tile.rows : tile.invocations;
  // A team has at least one row.
  const uint32_t invocations = std::min(
      {wanted, kMostInvocations, std::bit_floor(c.capabilities.max_invocations), pass_rows * team});
  use.spec.file = wide ? "linear_decode_q8_wide.wgsl" : "linear_decode_q8.wgsl";
  use.spec.label += fmt::format(" k={}", tile.columns);
  use.spec.workgroup_size = {invocations, 1, 1};
  add_reduce(use.spec, c.capabilities, team);
  if (wide) {
    ensure(invocations >= 8 * team, "a group of each column has an invocation");
    use.spec.includes.emplace_back(has_shuffles(c.capabilities) ? "lib/scatter_subgroup.wgsl"
                                                                : "lib/scatter_shared.wgsl");
    std::ranges::replace(use.spec.includes, kScalePairs, kScaleShift);
  }
  add_linear_out(use, op, c);
  auto& constants = use.spec.constants;
  constants.emplace_back("TEAM_ROWS", pass_rows * team / invocations);
  constants.emplace_back("TILE_ROWS", tile_rows);
  constants.emplace_back("COL_TILE", tile.columns);
  constants.emplace_back("UNROLL", tile.unroll);
  constants.emplace_back("X_WIDTH", cols);
  constants.emplace_back("X_RMS", op.x_norm_eps.has_value());
  constants.emplace_back("X_EPS", op.x_norm_eps.value_or(0.0F));
  set_tiles(use, div_up(rows, tile_rows));
}

void finish_float(KernelUse& use, const Tile& tile, uint32_t rows, uint32_t cols,
                  const ChooseContext& c) {
  const uint32_t team = team_size(c.capabilities, div_up(cols, 32));
  // Small matrices fill the device better with fewer rows a workgroup.
  const uint32_t invocations = std::max(team, rows < 4096 ? 128U : 256U);
  const uint32_t team_rows = rows < 2048 ? 1 : tile.rows;
  use.spec.file = "linear_decode_f32.wgsl";
  use.spec.label += fmt::format(" k={}", tile.columns);
  use.spec.workgroup_size = {invocations, 1, 1};
  add_reduce(use.spec, c.capabilities, team);
  use.spec.constants.emplace_back("TEAM_ROWS", team_rows);
  use.spec.constants.emplace_back("COL_TILE", tile.columns);
  set_tiles(use, div_up(rows, invocations / team * team_rows));
}

// How a matrix kernel makes halves of a group of weights.
std::string_view group_halves(formats::DType dtype) {
  if (has_group_scales(dtype)) return "lib/group_halves_scaled.wgsl";
  return formats::is_block_type(dtype) ? "lib/group_halves_blocks.wgsl"
                                       : "lib/group_halves_plain.wgsl";
}

void finish_prefill(KernelUse& use, const Tile& tile, const plan::Linear& op, uint32_t rows,
                    const ChooseContext& c) {
  use.spec.label += fmt::format(" tile {}", tile.columns);
  if (takes_matrices(op, c)) {
    set_matrix_tile(use, c, op.weight, op.x, tile.columns);
    use.spec.includes.emplace_back("lib/matrix_columns.wgsl");
  } else {
    use.spec.file = "linear_prefill.wgsl";
    use.spec.workgroup_size = {64, 1, 1};
    use.spec.constants.emplace_back("TILE_COLS", tile.columns);
  }
  use.grid.x = div_up(rows, tile.rows);
}

}  // namespace

void set_matrix_tile(KernelUse& use, const ChooseContext& c, plan::WeightId weight_id,
                     plan::ValueId x, uint32_t columns) {
  use.spec.file = "linear_prefill_matrix.wgsl";
  use.spec.workgroup_size = {256, 1, 1};
  use.spec.uses_f16 = use.spec.uses_matrix = true;
  const bool halves = c.plan[x].type == plan::ValueType::f16;
  use.spec.includes.emplace_back(halves ? "lib/x_parts_f16.wgsl" : "lib/x_parts_f32.wgsl");
  use.spec.includes.emplace_back(group_halves(weight(c, weight_id).dtype));
  auto& constants = use.spec.constants;
  constants.emplace_back("TILE_COLS", columns);
  constants.emplace_back("TILES_Y", columns / 32);
  constants.emplace_back("X_PARTS", columns / 16);
}

// q8 inputs take the decode kernels in both classes: they have no other, and within a class the
// bits stay the same. Cooperative matrices serve all steps of the prefill class or none.
std::vector<KernelUse> choose_op(const plan::Linear& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c) {
  const plan::Weight& w = weight(c, op.weight);
  const bool int8 = plan::is_q8(c.plan[op.x].type);
  const bool prefill = !int8 && kernel_class == plan::KernelClass::prefill;
  const bool matrices = prefill && takes_matrices(op, c);
  std::vector<KernelUse> uses;
  const DeviceWeight& parts = c.weights[plan::index(op.weight)];
  const auto add = [&](uint32_t part, const auto& tile, const auto& finish) {
    if (tile.when.min_rows > most_rows(c, op.out)) return;
    KernelUse use = base(op, part, matrices, c);
    finish(use);
    use.grid.rows_per_y = tile.columns;
    use.when = tile.when;
    uses.push_back(std::move(use));
  };
  std::span<const Tile> tiles = kFloatTiles;
  if (prefill) tiles = kPrefillTiles;
  if (matrices) tiles = kMatrixTiles;
  for (uint32_t part = 0; part < parts.size(); ++part) {
    const uint32_t rows = parts[part].rows;
    if (int8) {
      for (const Int8Tile& tile : kInt8Tiles) {
        add(part, tile, [&](KernelUse& use) { finish_int8(use, op, tile, rows, w.cols, c); });
      }
      continue;
    }
    for (const Tile& tile : tiles) {
      add(part, tile, [&](KernelUse& use) {
        if (prefill) {
          finish_prefill(use, tile, op, rows, c);
        } else {
          finish_float(use, tile, rows, w.cols, c);
        }
      });
    }
  }
  return uses;
}

}  // namespace wisp::backend::webgpu
