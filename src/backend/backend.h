// A backend runs plans: the CPU and the WebGPU one implement this. One thread drives a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/sampling.h"
#include "plan/plan.h"

namespace wisp::backend {

// The bytes of one weight, in its dtype, rows in order; consecutive parts may come from different
// places of mapped files. They stay valid while the backend lives.
using WeightParts = std::vector<std::span<const std::byte>>;

struct LoadOptions {
  plan::Resources resources;
  std::vector<WeightParts> weights;  // by weight index
  uint32_t num_pages = 0;            // KV pages, the same for every layer
  uint32_t max_slots = 0;            // sequences that run at once
  uint32_t max_pages_per_slot = 0;   // block-table stride
  // Rows of each state: slot s has row s, what is beyond max_slots is for copies. 0: max_slots.
  uint32_t num_states = 0;
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;  // may be empty
};

// Writes pages into a slot's row of the block table before the step runs.
struct TableUpdate {
  uint32_t slot = 0;
  uint32_t first = 0;  // index in the row
  std::vector<uint32_t> pages;
};

// Copies row `from` of every state to row `to` before the step's columns run: a snapshot of a slot,
// its way back, or a fork. Those of a step have no order: no row is written twice, or read too.
struct StateCopy {
  uint32_t from = 0;
  uint32_t to = 0;
};

// One column: a token of a sequence at a position.
struct Column {
  std::optional<int32_t> token;  // nullopt: the slot's last token, as the latest Sample of that
                                 // slot left it on the device
  uint32_t position = 0;
  uint32_t slot = 0;
};

// Columns of one plan. Those of one slot are contiguous with consecutive positions; all keys of
// earlier positions are in the cache, and the slot's states are those after the position before. A
// plan's results do not depend on which other columns run beside.
struct Step {
  std::vector<Column> columns;  // 1..max_columns
  std::vector<uint32_t>
      logit_columns;  // ascending column indices that want logits; any number up to columns
  std::vector<RowSampling> sampling;  // one for each logit column; empty: all greedy
  std::vector<TableUpdate> table_updates;
  std::vector<StateCopy> state_copies;
  bool read_logits = false;  // else only the tokens come back
};

struct StepResult {
  std::vector<int32_t> tokens;  // chosen for each logit column
  std::vector<uint8_t> finite;  // 0: the row of logits held a NaN or an infinity
  std::vector<float> logits;    // [logit columns, vocab_size] when asked for
};

enum class PlanHandle : uint32_t {};
enum class Ticket : uint64_t {};

inline constexpr uint32_t kMaxStepsInFlight = 4;

struct BackendInfo {
  std::string kind;             // "cpu", "webgpu"
  std::string device;           // "AMD EPYC, 2 threads (AVX2)", "NVIDIA H200 (Vulkan)"
  bool copies_weights = false;  // load() copied them: the memory of what it was given may go
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  uint64_t state_bytes = 0;
  uint64_t work_bytes = 0;  // activations, staging
  uint64_t objects = 0;     // buffers, bind groups, pipelines and layouts made on a GPU so far
  // Steps that are worth submitting before the oldest is waited for: a backend that computes inside
  // submit() says 2 (the two plans of a batch), so that results are told as they come.
  uint32_t steps_ahead = kMaxStepsInFlight;
};

// Times of one name: of ops from "blk.3.attn.qkv" the part after the layer, of steps the plan's.
struct ProfileRow {
  std::string name;
  uint64_t count = 0;
  double total_us = 0;
};

struct Profile {
  std::vector<ProfileRow> ops;    // dispatches on a GPU; by falling total
  std::vector<ProfileRow> steps;  // on a GPU its own time; a step with several passes of the head
                                  // counts as so many
  std::vector<ProfileRow> host;   // on a GPU the processor's time to record and submit a step
  std::string note;               // what could not be timed; may be empty
};

enum class Timed : uint8_t { ops, steps };

class Backend {
 public:
  virtual ~Backend() = default;

  // Takes the weights (the CPU reads them in place, a GPU copies them) and makes the KV cache.
  // Once, before prepare. Throws Error naming the weight that the device cannot hold, or what is
  // needed and what there is.
  virtual void load(LoadOptions options) = 0;

  // Verifies the plan and makes everything that its steps need. read_value works on `kept` values;
  // of others a backend may make nothing. Throws Error naming an op that it does not support.
  virtual PlanHandle prepare(const plan::Plan& plan, std::span<const plan::ValueId> kept = {}) = 0;

  // Starts a step; steps run in the order of submission. At most kMaxStepsInFlight may be waiting.
  virtual Ticket submit(PlanHandle plan, const Step& step) = 0;

  // The result of a step, each once, in any order. Throws Error when the device failed.
  virtual StepResult wait(Ticket ticket) = 0;

  // Sets an input value of a plan, or reads a kept value after a step; whole rows, row_bytes each.
  virtual void write_value(PlanHandle plan, plan::ValueId value,
                           std::span<const std::byte> rows) = 0;
  virtual std::vector<std::byte> read_value(PlanHandle plan, plan::ValueId value,
                                            uint32_t num_rows) = 0;

  // Reads or sets row `row` of a state, [width], after the steps that were submitted.
  virtual std::vector<float> read_state(plan::StateId state, uint32_t row) = 0;
  virtual void write_state(plan::StateId state, uint32_t row, std::span<const float> values) = 0;

  virtual BackendInfo info() const = 0;

  // Turns timing on or off, of each op (GPUs then time every second step of a plan as a whole,
  // since timing its dispatches slows a step) or of whole steps only. take_profile() waits for the
  // steps that were submitted and returns what was timed since the last call.
  virtual void set_profiling(bool on, Timed timed = Timed::ops) = 0;
  virtual Profile take_profile() = 0;
};

}  // namespace wisp::backend
