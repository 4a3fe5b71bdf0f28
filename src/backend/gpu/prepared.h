// A plan made ready for a device: buffers of its values, compiled kernels, bind groups, and the
// list of dispatches that each step encodes again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/gpu/choose.h"
#include "backend/gpu/sampling.h"
#include "backend/gpu/state.h"
#include "gpu/buffer.h"
#include "gpu/kernel.h"
#include "gpu/profile.h"
#include "gpu/recording.h"
#include "plan/plan.h"

namespace wisp::backend::webgpu {

// A step under way. Rows of logits of earlier passes of the head are here already.
struct PendingStep {
  gpu::Ticket ticket = 0;
  uint32_t rows = 0;  // logit rows
  gpu::Readback::Read results;
  gpu::Readback::Read logits;                    // of the last pass, when asked for
  uint32_t last_pass_rows = 0;                   // in `logits`
  std::vector<float> rows_done;                  // [rows before the last pass, vocab_size]
  std::chrono::steady_clock::duration waited{};  // for earlier passes, inside submit()
};

// How a step is timed: each dispatch, or as a whole.
struct StepTiming {
  gpu::Profiler* profiler = nullptr;  // null: not at all
  bool whole = false;
};

class PreparedPlan {
 public:
  // Everything given outlives the plan. Throws Error naming an op that has no kernel.
  PreparedPlan(gpu::Device& device, gpu::PipelineCache& cache, const State& state,
               const plan::Plan& plan, std::span<const plan::ValueId> kept);

  // Writes the step's inputs, encodes and submits it.
  PendingStep submit(const Step& step, const StepTiming& timing);
  StepResult wait(PendingStep& pending);

  void write_value(plan::ValueId value, std::span<const std::byte> rows);
  std::vector<std::byte> read_value(plan::ValueId value, uint32_t num_rows);

  const std::string& name() const { return plan_.name; }
  uint64_t steps_timed() const { return steps_timed_; }
  uint64_t work_bytes() const { return work_bytes_; }

 private:
  // One dispatch and what sets its counts.
  struct Item {
    size_t step = 0;  // in its recording
    bool logit_rows = false;
    Grid grid;
    Condition when;
  };
  // Ops before, and from SelectLogits on.
  struct Part {
    explicit Part(gpu::Device& device) : recording(device) {}
    gpu::Recording recording;
    std::vector<Item> items;
    // The counts now set are for these.
    uint32_t rows = 0;
    uint32_t ranges = 0;
    uint32_t tiles = 0;
    uint32_t sampling = 0;
    uint32_t runs = 0;
    uint32_t copies = 0;
  };
  // What kernels read first; the layout of kernels/lib/step.wgsl.
  struct StepInfo {
    uint32_t columns = 0;
    uint32_t logit_rows = 0;
    uint32_t first_logit = 0;
    uint32_t ranges = 0;
    uint32_t sampling = 0;
    uint32_t zero[3] = {};  // and padding
  };

  gpu::Buffer make(uint64_t bytes, std::string_view label,
                   gpu::BufferUse use = gpu::BufferUse::storage);
  void make_values();
  void make_step_buffers();
  void make_expert_buffers();
  void record();
  gpu::Slice resolve(const Binding& binding) const;
  void check(const Step& step) const;
  void write_step(const Step& step);
  uint32_t sampling_level(uint32_t first_row, uint32_t rows) const;
  uint32_t count_y(const Grid& grid, uint32_t rows) const;
  void set_counts(Part& part, uint32_t rows);
  void add_logits_read(gpu::Commands& commands, PendingStep& pending, uint32_t rows);
  void take_logits(PendingStep& pending);

  gpu::Device& device_;
  gpu::PipelineCache& cache_;
  const State& state_;
  std::vector<plan::ValueId> kept_;
  plan::Plan plan_;                      // fused
  std::optional<plan::ValueId> logits_;  // of Sample
  bool has_head_ = false;
  bool has_states_ = false;
  uint32_t num_positions_ = 0;  // plan::num_positions

  std::vector<gpu::Buffer> buffers_;
  std::vector<uint32_t> buffer_of_value_;
  gpu::Buffer step_info_, columns_, logit_columns_, tiles_, runs_, state_copies_, results_;
  gpu::Buffer sampling_, chunk_bests_, chunk_masses_, selections_, histograms_;
  gpu::Buffer range_values_, range_stats_, expert_tiles_, expert_items_, unused_;
  uint64_t work_bytes_ = 0;
  uint64_t steps_timed_ = 0;

  std::vector<std::array<uint32_t, 4>> column_words_, tile_words_, run_words_;
  uint32_t copies_ = 0;                        // of states in the step
  std::vector<SamplingWords> sampling_words_;  // of the step's logit rows; empty: all greedy
  StepInfo info_;
  Part body_, head_;
  gpu::Readback results_read_;
  std::unique_ptr<gpu::Readback> logits_read_;  // made when first asked for
};

}  // namespace wisp::backend::webgpu
