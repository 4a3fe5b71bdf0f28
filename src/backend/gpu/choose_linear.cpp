// Kernels of Linear.
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

// Measured on an H200 with Q4_0, 14336 x 4096 (docs/performance.md): few columns like more rows a
// team. Rows and tiles change no bits.
constexpr Tile kInt8Tiles[] = {
    {1, 2, {.min_rows = 1, .max_rows = 1}},
    {2, 4, {.min_rows = 2, .max_rows = 2}},
    {4, 2, {.min_rows = 3, .max_rows = 4}},
    {8, 2, {.min_rows = 5, .max_rows = kMost}},
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
      {"weight_scales", Bound::weight_scales, plan::index(op.weight), part_index},
      table_binding(c, "bias", op.bias),
      op.residual ? value_binding("residual", *op.residual) : Binding{"residual", Bound::unused}};
  const plan::Value& x = c.plan[op.x];
  if (x.type == plan::ValueType::q8) {
    constants.emplace_back("X_STRIDE", value_stride(x));
    use.bindings.push_back(value_binding("x_blocks", op.x));
    use.bindings.push_back(value_binding("x_words", op.x));
  } else {
    constants.emplace_back("X_STRIDE4", value_stride(x) / 4);
    constants.emplace_back("F16_INPUTS", op.f16_inputs && !matrices);  // those round by themselves
    use.bindings.push_back(value_binding("x", op.x));
  }
  return use;
}

void finish_decode(KernelUse& use, const Tile& tile, bool int8, uint32_t rows, uint32_t cols,
                   const ChooseContext& c) {
  const uint32_t team = team_size(c.capabilities, div_up(cols, 32));
  // Small matrices fill the device better with fewer rows a workgroup.
  const uint32_t invocations = std::max(team, rows < 4096 ? 128U : 256U);
  const uint32_t team_rows = rows < 2048 ? 1 : tile.rows;
  use.spec.file = int8 ? "linear_decode_q8.wgsl" : "linear_decode_f32.wgsl";
  use.spec.label += fmt::format(" k={}", tile.columns);
  use.spec.workgroup_size = {invocations, 1, 1};
  add_reduce(use.spec, c.capabilities, team);
  use.spec.constants.emplace_back("TEAM_ROWS", team_rows);
  use.spec.constants.emplace_back("COL_TILE", tile.columns);
  const uint32_t workgroups = div_up(rows, invocations / team * team_rows);
  use.grid.x = std::min(workgroups, 32768U);
  use.grid.z = div_up(workgroups, use.grid.x);
}

void finish_prefill(KernelUse& use, const Tile& tile, bool matrices, uint32_t rows) {
  use.spec.file = matrices ? "linear_prefill_matrix.wgsl" : "linear_prefill.wgsl";
  use.spec.label += fmt::format(" tile {}", tile.columns);
  use.spec.workgroup_size = {matrices ? 256U : 64U, 1, 1};
  use.spec.uses_f16 = use.spec.uses_matrix = matrices;
  use.spec.constants.emplace_back("TILE_COLS", tile.columns);
  use.grid.x = div_up(rows, tile.rows);
}

}  // namespace

// q8 inputs take the decode kernels in both classes: they have no other, and within a class the
// bits stay the same. Cooperative matrices serve all steps of the prefill class or none.
std::vector<KernelUse> choose_op(const plan::Linear& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c) {
  const plan::Weight& w = weight(c, op.weight);
  const bool int8 = c.plan[op.x].type == plan::ValueType::q8;
  const bool prefill = !int8 && kernel_class == plan::KernelClass::prefill;
  const bool matrices = prefill && op.f16_inputs && has_matrices(c.capabilities);
  std::span<const Tile> tiles = kFloatTiles;
  if (int8) tiles = kInt8Tiles;
  if (prefill) tiles = kPrefillTiles;
  if (matrices) tiles = kMatrixTiles;
  std::vector<KernelUse> uses;
  const DeviceWeight& parts = c.weights[plan::index(op.weight)];
  for (uint32_t part = 0; part < parts.size(); ++part) {
    for (const Tile& tile : tiles) {
      if (tile.when.min_rows > most_rows(c, op.out)) continue;
      KernelUse use = base(op, part, matrices, c);
      if (prefill) {
        finish_prefill(use, tile, matrices, parts[part].rows);
      } else {
        finish_decode(use, tile, int8, parts[part].rows, w.cols, c);
      }
      use.grid.rows_per_y = tile.columns;
      use.when = tile.when;
      uses.push_back(std::move(use));
    }
  }
  return uses;
}

}  // namespace wisp::backend::webgpu
