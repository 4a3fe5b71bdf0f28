#include "backend/gpu/backend.h"

#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "backend/gpu/layout.h"
#include "backend/gpu/prepared.h"
#include "backend/gpu/state.h"
#include "base/error.h"
#include "gpu/kernel.h"
#include "gpu/profile.h"

namespace wisp::backend {
namespace webgpu {
namespace {

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(const GpuBackendOptions& options)
      : context_(options.context ? options.context : std::make_shared<GpuContext>(options.device)),
        memory_budget_(options.memory_budget) {}

  void load(LoadOptions options) override {
    ensure(!state_, "load is called once");
    state_ = std::make_unique<State>(load_state(device(), options, memory_budget_));
  }

  PlanHandle prepare(const plan::Plan& plan, std::span<const plan::ValueId> kept) override {
    ensure(state_ != nullptr, "load comes before prepare");
    plan::verify(plan, state_->resources);
    plans_.push_back(
        std::make_unique<PreparedPlan>(device(), context_->cache, *state_, plan, kept));
    return PlanHandle{static_cast<uint32_t>(plans_.size() - 1)};
  }

  Ticket submit(PlanHandle plan, const Step& step) override {
    ensure(waiting_.size() < kMaxStepsInFlight, "at most kMaxStepsInFlight steps wait");
    PreparedPlan& prepared = at(plan);
    const Ticket ticket{++last_ticket_};
    waiting_[ticket] = {&prepared,
                        profiling_ ? timed_submit(prepared, step) : prepared.submit(step, {})};
    return ticket;
  }

  StepResult wait(Ticket ticket) override {
    auto waiting = waiting_.extract(ticket);
    ensure(!waiting.empty(), "a ticket is waited for once");
    auto& [prepared, pending] = waiting.mapped();
    return prepared->wait(pending);
  }

  void write_value(PlanHandle plan, plan::ValueId value, std::span<const std::byte> rows) override {
    at(plan).write_value(value, rows);
  }

  std::vector<std::byte> read_value(PlanHandle plan, plan::ValueId value,
                                    uint32_t num_rows) override {
    return at(plan).read_value(value, num_rows);
  }

  std::vector<float> read_state(plan::StateId state, uint32_t row) override {
    const StateRow at = state_row(state, row);
    std::vector<float> values(at.width);
    const auto bytes = device().read(*at.buffer, at.offset, values.size() * sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  void write_state(plan::StateId state, uint32_t row, std::span<const float> values) override {
    const StateRow at = state_row(state, row);
    ensure(values.size() == at.width, "a whole row of a state is written");
    device().write(*at.buffer, at.offset, std::as_bytes(values));
  }

  BackendInfo info() const override {
    const gpu::AdapterInfo& adapter = device().adapter();
    BackendInfo info{.kind = "webgpu",
                     .device = fmt::format("{} ({})", adapter.name, adapter.backend),
                     .copies_weights = true};
    if (state_) {
      info.weight_bytes = state_->weight_bytes;
      info.kv_bytes = state_->kv_bytes;
      info.state_bytes = state_->state_bytes;
    }
    info.objects = device().counts().all();
    for (const auto& plan : plans_) info.work_bytes += plan->work_bytes();
    return info;
  }

  void set_profiling(bool on, Timed timed) override {
    profiling_ = on;
    timed_ = timed;
  }

  Profile take_profile() override {
    gpu::Profiler::Times times = profiler()->take();
    Profile profile{rows(times.dispatches), rows(times.submissions), {}, {}};
    for (auto& [name, row] : host_times_) profile.host.push_back(std::move(row));
    host_times_.clear();
    if (!profiler()->has_timestamps()) profile.note = "the adapter has no timestamps";
    if (times.untimed > 0) {
      profile.note = fmt::format("{} dispatches were not timed", times.untimed);
    }
    return profile;
  }

 private:
  struct Waiting {
    PreparedPlan* plan = nullptr;
    PendingStep step;
  };
  struct StateRow {
    const gpu::Buffer* buffer = nullptr;
    uint64_t offset = 0;
    size_t width = 0;
  };

  StateRow state_row(plan::StateId state, uint32_t row) const {
    const size_t i = plan::index(state);
    ensure(state_ && i < state_->states.size() && row < state_->num_states,
           "the state has the row");
    const uint32_t width = state_->resources.states[i].width;
    return {&state_->states[i], uint64_t{row} * state_stride(width) * sizeof(float), width};
  }

  static std::vector<ProfileRow> rows(const std::vector<gpu::Profiler::Row>& times) {
    std::vector<ProfileRow> out;
    out.reserve(times.size());
    for (const auto& row : times) out.push_back({row.name, row.count, row.total_us});
    return out;
  }

  // The processor's time is that of steps without a pass for each dispatch.
  PendingStep timed_submit(PreparedPlan& prepared, const Step& step) {
    const bool whole = timed_ == Timed::steps || prepared.steps_timed() % 2 == 1;
    const auto start = std::chrono::steady_clock::now();
    PendingStep pending = prepared.submit(step, {.profiler = profiler(), .whole = whole});
    const auto time = std::chrono::steady_clock::now() - start - pending.waited;
    if (whole) {
      ProfileRow& row = host_times_[prepared.name()];
      row.name = prepared.name();
      row.count += 1;
      row.total_us += std::chrono::duration<double, std::micro>(time).count();
    }
    return pending;
  }

  PreparedPlan& at(PlanHandle plan) {
    const auto index = static_cast<size_t>(plan);
    ensure(index < plans_.size(), "a plan of this backend");
    return *plans_[index];
  }

  gpu::Profiler* profiler() {
    if (!profiler_) profiler_.emplace(device());
    return &*profiler_;
  }

  gpu::Device& device() const { return *context_->device; }

  std::shared_ptr<GpuContext> context_;
  uint64_t memory_budget_;
  std::optional<gpu::Profiler> profiler_;
  std::unique_ptr<State> state_;
  std::vector<std::unique_ptr<PreparedPlan>> plans_;
  std::map<Ticket, Waiting> waiting_;
  uint64_t last_ticket_ = 0;
  bool profiling_ = false;
  Timed timed_ = Timed::ops;
  std::map<std::string, ProfileRow> host_times_;  // by plan
};

}  // namespace
}  // namespace webgpu

GpuContext::GpuContext(const gpu::DeviceOptions& options)
    : device(gpu::Device::create(options)), cache(*device) {}

std::unique_ptr<Backend> make_gpu_backend(const GpuBackendOptions& options) {
  return std::make_unique<webgpu::GpuBackend>(options);
}

}  // namespace wisp::backend
