#include "backend/gpu/backend.h"

#include <map>
#include <optional>

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
    waiting_[ticket] = {&prepared, prepared.submit(step, profiling_ ? profiler() : nullptr)};
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

  BackendInfo info() const override {
    const gpu::AdapterInfo& adapter = device().adapter();
    BackendInfo info{.kind = "webgpu",
                     .device = fmt::format("{} ({})", adapter.name, adapter.backend)};
    if (state_) {
      info.weight_bytes = state_->weight_bytes;
      info.kv_bytes = state_->kv_bytes;
    }
    for (const auto& plan : plans_) info.work_bytes += plan->work_bytes();
    return info;
  }

  void set_profiling(bool on) override { profiling_ = on; }
  std::string profile() override { return profiler()->table(); }

 private:
  struct Waiting {
    PreparedPlan* plan = nullptr;
    PendingStep step;
  };

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
};

}  // namespace
}  // namespace webgpu

GpuContext::GpuContext(const gpu::DeviceOptions& options)
    : device(gpu::Device::create(options)), cache(*device) {}

std::unique_ptr<Backend> make_gpu_backend(const GpuBackendOptions& options) {
  return std::make_unique<webgpu::GpuBackend>(options);
}

}  // namespace wisp::backend
