// Running a PreparedPlan: inputs of a step, encoding, results.
#include <algorithm>
#include <cstring>

#include "backend/gpu/layout.h"
#include "backend/gpu/prepared.h"
#include "backend/state_copies.h"
#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::webgpu {
namespace {

constexpr uint32_t kLastToken = 0xffffffff;  // kernels/embed.wgsl

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

void PreparedPlan::check(const Step& step) const {
  const size_t k = step.columns.size();
  if (k == 0 || k > plan_.max_columns) {
    fail("plan {}: {} columns, expected 1 to {}", plan_.name, k, plan_.max_columns);
  }
  if (!step.logit_columns.empty() && !has_head_) fail("plan {} has no logits", plan_.name);
  const uint64_t positions = uint64_t{state_.page_stride} * plan::kPageTokens;
  for (const Column& column : step.columns) {
    if (column.slot >= state_.max_slots) fail("slot {} of {}", column.slot, state_.max_slots);
    if (column.position >= positions) {
      fail("position {}: a slot has {}", column.position, positions);
    }
    if (column.position >= num_positions_) {
      fail("position {}: the model's tables have {}", column.position, num_positions_);
    }
    if (column.token && (*column.token < 0 || static_cast<uint32_t>(*column.token) >=
                                                  std::max(1U, state_.resources.vocab_size))) {
      fail("token {} is not in the vocabulary of {}", *column.token, state_.resources.vocab_size);
    }
  }
  check_copies(step, state_.num_states);
  if (!step.sampling.empty() && step.sampling.size() != step.logit_columns.size()) {
    fail("{} rows of sampling for {} logit columns", step.sampling.size(),
         step.logit_columns.size());
  }
  for (size_t i = 0; i < step.logit_columns.size(); ++i) {
    if (step.logit_columns[i] >= k ||
        (i > 0 && step.logit_columns[i] <= step.logit_columns[i - 1])) {
      fail("logit columns must rise and be below {}", k);
    }
  }
}

void PreparedPlan::write_step(const Step& step) {
  for (const TableUpdate& update : step.table_updates) update_table(device_, state_, update);
  column_words_.clear();
  tile_words_.clear();
  run_words_.clear();
  uint32_t last = 0;
  for (uint32_t i = 0; i < step.columns.size(); ++i) {
    const Column& column = step.columns[i];
    const uint32_t token = column.token ? static_cast<uint32_t>(*column.token) : kLastToken;
    last = std::max(last, column.position);
    const bool same_run = i > 0 && step.columns[i - 1].slot == column.slot;
    if (!same_run) run_words_.push_back({i, 0, column.slot, column.position});
    column_words_.push_back({token, column.position, column.slot, run_words_.back()[1]++});
    const bool follows = same_run && step.columns[i - 1].position + 1 == column.position;
    if (follows && tile_words_.back()[1] < kPrefillTile) {
      ++tile_words_.back()[1];
    } else {
      tile_words_.push_back({i, 1, 0, 0});
    }
  }
  info_ = {.columns = static_cast<uint32_t>(step.columns.size()),
           .logit_rows = 0,
           .first_logit = 0,
           .ranges = last / kKeysPerRange + 1,
           .sampling = 0,
           .zero = {}};
  device_.write(columns_, 0, bytes_of(column_words_));
  device_.write(tiles_, 0, bytes_of(tile_words_));
  copies_ = static_cast<uint32_t>(step.state_copies.size());
  if (has_states_) device_.write(runs_, 0, bytes_of(run_words_));
  if (has_states_ && copies_ > 0) device_.write(state_copies_, 0, bytes_of(step.state_copies));
  if (!step.logit_columns.empty()) {
    device_.write(logit_columns_, 0, bytes_of(step.logit_columns));
  }
  sampling_words_.clear();
  if (!logits_ || step.sampling.empty()) return;
  for (const RowSampling& row : step.sampling) {
    sampling_words_.push_back(sampling_words(row, plan_[*logits_].width));
  }
  device_.write(sampling_, 0, bytes_of(sampling_words_));
}

uint32_t PreparedPlan::sampling_level(uint32_t first_row, uint32_t rows) const {
  if (sampling_words_.empty()) return 0;
  uint32_t level = 0;
  for (uint32_t row = first_row; row < first_row + rows; ++row) {
    level = std::max(level, sampling_words_[row].level);
  }
  return level;
}

uint32_t PreparedPlan::count_y(const Grid& grid, uint32_t rows) const {
  switch (grid.y) {
    case GridY::rows:
      return static_cast<uint32_t>(ceil_div(rows * grid.row_items, grid.rows_per_y));
    case GridY::tiles:
      return static_cast<uint32_t>(tile_words_.size());
    case GridY::runs:
      return static_cast<uint32_t>(run_words_.size());
    case GridY::state_copies:
      return copies_;
  }
  return 0;
}

void PreparedPlan::set_counts(Part& part, uint32_t rows) {
  const auto tiles = static_cast<uint32_t>(tile_words_.size());
  if (part.rows == rows && part.ranges == info_.ranges && part.tiles == tiles &&
      part.sampling == info_.sampling && part.runs == run_words_.size() && part.copies == copies_) {
    return;
  }
  part.rows = rows;
  part.ranges = info_.ranges;
  part.tiles = tiles;
  part.sampling = info_.sampling;
  part.runs = static_cast<uint32_t>(run_words_.size());
  part.copies = copies_;
  for (const Item& item : part.items) {
    const Condition& when = item.when;
    if (rows < when.min_rows || rows > when.max_rows || info_.ranges < when.min_ranges ||
        info_.ranges > when.max_ranges || info_.sampling < when.min_sampling ||
        copies_ < when.min_copies) {
      part.recording.set_workgroups(item.step, 0, 0, 0);
      continue;
    }
    const Grid& grid = item.grid;
    part.recording.set_workgroups(item.step, grid.x, count_y(grid, rows) + grid.more_y,
                                  grid.z_is_ranges ? info_.ranges : grid.z);
  }
}

PendingStep PreparedPlan::submit(const Step& step, const StepTiming& timing) {
  check(step);
  write_step(step);
  if (timing.profiler != nullptr) ++steps_timed_;
  PendingStep pending;
  pending.rows = static_cast<uint32_t>(step.logit_columns.size());
  set_counts(body_, info_.columns);
  for (uint32_t first = 0;; first += info_.logit_rows) {
    info_.first_logit = first;
    info_.logit_rows = std::min(pending.rows - first, plan_.max_logits);
    info_.sampling = sampling_level(first, info_.logit_rows);
    const bool last = first + info_.logit_rows >= pending.rows;
    device_.write(step_info_, 0, std::as_bytes(std::span(&info_, 1)));
    gpu::Commands commands(device_, timing.profiler, timing.whole ? plan_.name : "");
    if (first == 0) body_.recording.encode(commands);
    if (info_.logit_rows > 0) {
      set_counts(head_, info_.logit_rows);
      head_.recording.encode(commands);
      if (step.read_logits) add_logits_read(commands, pending, info_.logit_rows);
    }
    if (last && pending.rows > 0) {
      pending.results = commands.read(results_read_, results_, 0, uint64_t{pending.rows} * 8);
    }
    pending.ticket = commands.submit();
    if (last) break;
    if (!step.read_logits) continue;
    const auto start = std::chrono::steady_clock::now();
    take_logits(pending);
    pending.waited += std::chrono::steady_clock::now() - start;
  }
  return pending;
}

void PreparedPlan::add_logits_read(gpu::Commands& commands, PendingStep& pending, uint32_t rows) {
  if (!logits_) fail("plan {} has no logits to read", plan_.name);
  const uint64_t row = uint64_t{value_stride(plan_[*logits_])} * 4;
  if (!logits_read_) {
    logits_read_ =
        std::make_unique<gpu::Readback>(device_, kMaxStepsInFlight, plan_.max_logits * row);
    work_bytes_ += kMaxStepsInFlight * plan_.max_logits * row;
  }
  const gpu::Buffer& buffer = buffers_[buffer_of_value_[plan::index(*logits_)]];
  pending.logits = commands.read(*logits_read_, buffer, 0, rows * row);
  pending.last_pass_rows = rows;
}

void PreparedPlan::take_logits(PendingStep& pending) {
  const plan::Value& value = plan_[*logits_];
  const std::span<const std::byte> bytes = logits_read_->wait(pending.logits);
  const size_t at = pending.rows_done.size();
  pending.rows_done.resize(at + size_t{pending.last_pass_rows} * value.width);
  for (uint32_t r = 0; r < pending.last_pass_rows; ++r) {
    std::memcpy(pending.rows_done.data() + at + size_t{r} * value.width,
                bytes.data() + size_t{r} * value_stride(value) * 4, size_t{value.width} * 4);
  }
  pending.logits = {};
}

StepResult PreparedPlan::wait(PendingStep& pending) {
  StepResult result;
  if (pending.rows == 0 || !logits_) {
    device_.wait(pending.ticket);
    return result;
  }
  const std::span<const std::byte> bytes = results_read_.wait(pending.results);
  for (uint32_t r = 0; r < pending.rows; ++r) {
    std::array<uint32_t, 2> words{};
    std::memcpy(words.data(), bytes.data() + size_t{r} * 8, 8);
    result.tokens.push_back(static_cast<int32_t>(words[0]));
    result.finite.push_back(static_cast<uint8_t>(words[1]));
  }
  if (pending.logits.number != 0) {
    take_logits(pending);
    result.logits = std::move(pending.rows_done);
  }
  return result;
}

void PreparedPlan::write_value(plan::ValueId id, std::span<const std::byte> rows) {
  const plan::Value& value = plan_[id];
  ensure(rows.size() % plan::row_bytes(value) == 0, "whole rows are written");
  ensure(std::ranges::find(plan_.inputs, id) != plan_.inputs.end(),
         "inputs of the plan are written");
  device_.write(buffers_[buffer_of_value_[plan::index(id)]], 0, to_device(value, rows));
}

std::vector<std::byte> PreparedPlan::read_value(plan::ValueId id, uint32_t num_rows) {
  ensure(std::ranges::find(kept_, id) != kept_.end(), "kept values are read");
  const plan::Value& value = plan_[id];
  const uint64_t row = uint64_t{value_stride(value)} * 4;
  return from_device(value,
                     device_.read(buffers_[buffer_of_value_[plan::index(id)]], 0, num_rows * row));
}

}  // namespace wisp::backend::webgpu
