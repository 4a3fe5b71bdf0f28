#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "backend/cpu/backend.h"
#include "backend/gpu/backend.h"
#include "backend/selftest/kernel_list.h"
#include "base/error.h"

namespace wisp::lab {
namespace {

using backend::Backend;
using backend::PlanHandle;
using backend::selftest::CaseRun;
using backend::selftest::CaseStep;
using backend::selftest::OpCase;

// More than the caches of cards, so that weights come from memory; and what copies may take.
constexpr uint64_t kStreamedBytes = uint64_t{256} << 20;
constexpr uint64_t kMostBytes = uint64_t{4} << 30;
constexpr uint32_t kWarmUps = 2;  // at least, and until the card has left its idle clocks
constexpr std::chrono::milliseconds kWarmUpTime{20};
constexpr uint32_t kCheckedColumns = 16;
constexpr uint32_t kCpuCopies = 2;  // where a processor does the work of the card

// A case on a backend, its pages filled.
struct Loaded {
  std::unique_ptr<Backend> backend;
  LabCase lab;
};

Loaded load(std::unique_ptr<Backend> backend, LabCase lab) {
  backend::LoadOptions options;
  options.resources = lab.op_case.resources;
  for (const auto& bytes : lab.op_case.weights) options.weights.push_back({*bytes});
  options.num_pages = lab.op_case.num_pages;
  options.max_slots = lab.op_case.max_slots;
  options.max_pages_per_slot = lab.op_case.max_pages_per_slot;
  backend->load(std::move(options));
  if (!lab.fill.ops.empty()) {
    const PlanHandle fill = backend->prepare(lab.fill);
    for (const auto& input : lab.fill_inputs) backend->write_value(fill, input.value, input.rows);
    for (const backend::Step& step : lab.fill_steps) backend->wait(backend->submit(fill, step));
  }
  return {std::move(backend), std::move(lab)};
}

void write_inputs(Backend& backend, PlanHandle plan, const CaseStep& step) {
  for (const auto& input : step.inputs) backend.write_value(plan, input.value, input.rows);
}

// Columns that the check looks at: the first, the last and some between.
std::vector<uint32_t> checked_columns(uint32_t columns) {
  const uint32_t count = std::min(columns, kCheckedColumns);
  std::vector<uint32_t> picked;
  for (uint32_t i = 0; i < count; ++i) {
    picked.push_back(count == 1 ? 0
                                : static_cast<uint32_t>(uint64_t{i} * (columns - 1) / (count - 1)));
  }
  return picked;
}

// One column of a step, as a step.
CaseStep column_alone(const OpCase& op_case, const CaseStep& whole, uint32_t column) {
  CaseStep alone;
  alone.step.columns = {whole.step.columns[column]};
  if (!whole.step.logit_columns.empty()) alone.step.logit_columns = {0};
  for (const auto& input : whole.inputs) {
    const auto bytes = static_cast<ptrdiff_t>(plan::row_bytes(op_case.plan[input.value]));
    const auto begin = input.rows.begin() + column * bytes;
    alone.inputs.push_back({input.value, {begin, begin + bytes}});
  }
  return alone;
}

// Compares results of the device with those of the CPU backend for the same columns one at a time.
class Checker {
 public:
  Checker(const CaseSpec& spec, size_t threads)
      : reference_(load(backend::make_cpu_backend(threads), spec.make({}))),
        plan_(reference_.backend->prepare(reference_.lab.op_case.plan,
                                          reference_.lab.op_case.outputs)) {}

  // The results of step `point` in a plan of several copies of the op: of the first and the last.
  std::string difference(Backend& backend, PlanHandle plan, const OpCase& whole, size_t point) {
    const CaseStep& step = whole.steps[point];
    write_inputs(backend, plan, step);
    const backend::StepResult result = backend.wait(backend.submit(plan, step.step));
    const auto rows = static_cast<uint32_t>(step.step.columns.size());
    std::vector<std::vector<std::byte>> first, last;
    const size_t outputs = reference_.lab.op_case.outputs.size();
    for (size_t i = 0; i < outputs; ++i) {
      const size_t other = whole.outputs.size() - outputs + i;
      first.push_back(backend.read_value(plan, whole.outputs[i], rows));
      last.push_back(backend.read_value(plan, whole.outputs[other], rows));
      if (first.back() != last.back()) return "copies of the op differ";
    }

    OpCase op_case = reference_.lab.op_case;
    op_case.steps.clear();
    CaseRun actual, expected;
    for (const uint32_t column : checked_columns(rows)) {
      op_case.steps.push_back(column_alone(whole, step, column));
      expected.push_back(run(op_case.steps.back()));
      auto& part = actual.emplace_back();
      for (size_t i = 0; i < outputs; ++i) {
        const auto bytes =
            static_cast<ptrdiff_t>(plan::row_bytes(op_case.plan[op_case.outputs[i]]));
        const auto begin = first[i].begin() + column * bytes;
        part.outputs.emplace_back(begin, begin + bytes);
      }
      if (!result.tokens.empty()) {
        part.result.tokens = {result.tokens[column]};
        part.result.finite = {result.finite[column]};
      }
    }
    return backend::selftest::difference(op_case, actual, expected);
  }

 private:
  backend::selftest::StepRun run(const CaseStep& step) {
    Backend& backend = *reference_.backend;
    write_inputs(backend, plan_, step);
    backend::selftest::StepRun out;
    out.result = backend.wait(backend.submit(plan_, step.step));
    for (const plan::ValueId id : reference_.lab.op_case.outputs) {
      out.outputs.push_back(backend.read_value(plan_, id, 1));
    }
    // A plan of several ops tells as many tokens; they are the same.
    out.result.tokens.resize(std::min<size_t>(1, out.result.tokens.size()));
    out.result.finite.resize(out.result.tokens.size());
    return out;
  }

  Loaded reference_;
  PlanHandle plan_;
};

// Median microseconds of a step.
double time_step(Backend& backend, PlanHandle plan, const CaseStep& step, uint32_t repetitions) {
  write_inputs(backend, plan, step);
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < kWarmUps || std::chrono::steady_clock::now() - begin < kWarmUpTime;
       ++i) {
    backend.wait(backend.submit(plan, step.step));
  }
  std::vector<double> times;
  backend.set_profiling(true, backend::Timed::steps);
  for (uint32_t i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    backend.wait(backend.submit(plan, step.step));
    const std::chrono::duration<double, std::micro> wall = std::chrono::steady_clock::now() - start;
    const backend::Profile profile = backend.take_profile();
    times.push_back(profile.steps.empty() ? wall.count() : profile.steps[0].total_us);
  }
  backend.set_profiling(false);
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

// "linear_decode_q8 (128 invocations, TEAM 32)".
std::string kernel_text(const std::vector<gpu::KernelSpec>& kernels) {
  constexpr std::string_view kEnd = ".wgsl";
  std::string text;
  for (const gpu::KernelSpec& spec : kernels) {
    const std::string file = spec.file.substr(0, spec.file.size() - kEnd.size());
    text += fmt::format("{}{} ({})", text.empty() ? "" : " + ", file,
                        backend::selftest::variant_text(spec));
  }
  return text;
}

}  // namespace

Laboratory::Laboratory(const cli::DeviceFlags& flags) : threads_(flags.threads) {
  if (flags.backend == "cpu") return;
  context_ = std::make_shared<backend::GpuContext>(gpu::DeviceOptions{.adapter = flags.adapter});
}

std::string Laboratory::device() const {
  if (context_ == nullptr) return backend::make_cpu_backend(threads_)->info().device;
  return backend::make_gpu_backend({.context = context_})->info().device;
}

bool Laboratory::has_timestamps() const {
  return context_ != nullptr && context_->device->capabilities().timestamps;
}

Copies Laboratory::copies_of(const CaseSpec& spec, const MeasureOptions& options) const {
  Copies copies{.ops = spec.ops};
  const bool card = context_ != nullptr && !context_->device->capabilities().is_cpu_adapter;
  if (!card) copies.ops = kCpuCopies;
  if (options.copies > 0) copies.ops = options.copies;
  if (spec.weight_bytes == 0) return copies;
  const uint64_t enough = std::max<uint64_t>(2, kStreamedBytes / spec.weight_bytes + 1);
  const uint64_t fit = std::max<uint64_t>(1, kMostBytes / spec.weight_bytes);
  copies.weights = static_cast<uint32_t>(std::min({uint64_t{copies.ops}, enough, fit}));
  return copies;
}

void Laboratory::measure(const CaseSpec& spec, const MeasureOptions& options,
                         const std::function<void(const Row&)>& row) const {
  const Copies copies = copies_of(spec, options);
  const Loaded loaded = load(context_ != nullptr ? backend::make_gpu_backend({.context = context_})
                                                 : backend::make_cpu_backend(threads_),
                             spec.make(copies));
  const OpCase& op_case = loaded.lab.op_case;
  Backend& backend = *loaded.backend;
  // Outputs that stay lie in buffers of their own: nothing waits. Else they share one, and WebGPU
  // puts a barrier between two ops that write it.
  const PlanHandle streamed = backend.prepare(op_case.plan, op_case.outputs);
  const PlanHandle in_sequence = backend.prepare(op_case.plan);
  std::optional<Checker> checker;
  if (options.check) checker.emplace(spec, threads_);
  for (size_t i = 0; i < loaded.lab.points.size(); ++i) {
    Row result{.spec = &spec, .point = loaded.lab.points[i]};
    if (checker) result.wrong = checker->difference(backend, streamed, op_case, i);
    const CaseStep& step = op_case.steps[i];
    result.streamed_us = time_step(backend, streamed, step, options.repetitions) / copies.ops;
    result.in_sequence_us = time_step(backend, in_sequence, step, options.repetitions) / copies.ops;
    if (context_ != nullptr) {
      const auto kernels =
          backend::selftest::step_kernels(op_case, step.step, context_->device->capabilities());
      result.kernel = kernel_text(kernels);
      result.matrices = std::ranges::any_of(kernels, &gpu::KernelSpec::uses_matrix);
    }
    row(result);
  }
}

}  // namespace wisp::lab
