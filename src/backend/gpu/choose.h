// The one table of kernels: an op, the adapter's capabilities and the shapes give the kernels that
// run it. An op that has none is not supported, and the error says why.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/gpu/weights.h"
#include "gpu/capabilities.h"
#include "gpu/kernel.h"
#include "plan/plan.h"

namespace wisp::backend::webgpu {

// What a binding of a kernel is.
enum class Bound : uint8_t {
  value,          // index: value
  weight_data,    // index: weight, part
  weight_side,    // index: weight, part
  keys,           // index: KV layer
  values,         // index: KV layer
  step,           // StepInfo
  columns,        // u32 [columns][token, position, slot, columns of its run before it]
  runs,           // u32 [runs][first column, columns, slot, position of the first]: of a slot each
  states,         // index: state
  state_copies,   // u32 [copies][from, to]
  block_table,    // u32 [slots][max_pages_per_slot]
  last_tokens,    // u32 [slots]
  logit_columns,  // u32 [logit rows]
  tiles,          // u32 [tiles][first column, columns, 0, 0] of prefill attention
  results,        // u32 [logit rows][token, finite]
  sampling,       // SamplingWords [logit rows]
  chunk_bests,    // u32 [rows of a pass][chunks of kBestChunk][4], and what the other kernels of
  chunk_masses,   // Sample keep: u32 [rows of a pass][chunks of kSampleChunk][4],
  selections,     // kSelectionsBytes a row,
  histograms,     // kHistogramsBytes a row
  range_values,   // f32 [columns][heads][ranges][value_dim] of split attention
  range_stats,    // f32 [columns][heads][ranges][2]
  expert_tiles,   // u32 [tiles][expert, first item, items, 0] of grouped experts
  expert_items,   // u32 [columns * top_k], sorted by expert
  unused,         // declared but not read by this variant
};

struct Binding {
  std::string_view name;  // as in the WGSL
  Bound bound = Bound::unused;
  uint32_t index = 0;
  uint32_t part = 0;
};

// What y counts: rows of the op, or of a list that the step has.
enum class GridY : uint8_t { rows, tiles, runs, state_copies };

// Workgroup counts as functions of a step.
struct Grid {
  uint32_t x = 1;
  uint32_t z = 1;
  GridY y = GridY::rows;
  uint32_t rows_per_y = 1;   // y = rows / this, rounded up
  uint32_t row_items = 1;    // each row counts as so many
  uint32_t more_y = 0;       // added to y
  bool z_is_ranges = false;  // z = the step's key ranges
};

// When a variant runs.
struct Condition {
  uint32_t min_rows = 1;
  uint32_t max_rows = std::numeric_limits<uint32_t>::max();
  uint32_t min_ranges = 0;
  uint32_t max_ranges = std::numeric_limits<uint32_t>::max();
  uint32_t min_sampling = 0;  // the highest level of a pass's rows (sampling.h)
  uint32_t min_copies = 0;    // of states
};

struct KernelUse {
  gpu::KernelSpec spec;
  std::vector<Binding> bindings;
  std::vector<uint32_t> params;  // words of the kernel's params struct
  Grid grid;
  Condition when;
};

// What the choice depends on beside the op. Everything outlives it.
struct ChooseContext {
  const gpu::Capabilities& capabilities;
  const plan::Plan& plan;
  const plan::Resources& resources;
  std::span<const DeviceWeight> weights;
  uint32_t page_stride = 0;  // max_pages_per_slot
};

// The kernels of `op` in the order in which they run; the conditions say which of them a step
// takes. Throws Error that says what is not supported.
std::vector<KernelUse> choose(const plan::Op& op, const ChooseContext& context);

// The kernel that copies rows of a state; Condition::min_copies lets it run.
KernelUse choose_state_copy(plan::StateId id, const plan::Resources& resources);

// Whether cooperative matrices serve an op of the prefill class.
bool has_matrices(const gpu::Capabilities& capabilities);
bool takes_matrices(const plan::Attention& op, const plan::Resources& resources,
                    const gpu::Capabilities& capabilities);
bool takes_matrices(const plan::ExpertLinear& op, const plan::Resources& resources,
                    const gpu::Capabilities& capabilities);

// Positions in one range of split attention, and how many ranges a slot has at most.
inline constexpr uint32_t kKeysPerRange = 128;
uint32_t max_ranges(uint32_t page_stride);

// Rows of Bound::expert_tiles in a step of `rows` at most, and the fewest items of a full tile.
inline constexpr uint32_t kLeastItemTile = 4;
uint32_t max_expert_tiles(const plan::ExpertLinear& op, uint32_t rows);

// Columns of one slot in a tile of prefill attention.
inline constexpr uint32_t kPrefillTile = 32;

}  // namespace wisp::backend::webgpu
