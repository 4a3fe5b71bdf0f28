#include "gpu/device.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/checked.h"
#include "base/error.h"
#include "base/log.h"
#include "gpu/buffer.h"
#include "gpu/measure.h"
#include "gpu/provider.h"

namespace wisp::gpu {
namespace {

constexpr uint64_t kStagingLimit = uint64_t{64} << 20;
constexpr uint64_t kWriteChunk = uint64_t{8} << 20;
constexpr uint64_t kFlushAfter = uint64_t{16} << 20;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

AdapterKind kind_of(WGPUAdapterType type) {
  switch (type) {
    case WGPUAdapterType_DiscreteGPU:
      return AdapterKind::discrete_gpu;
    case WGPUAdapterType_IntegratedGPU:
      return AdapterKind::integrated_gpu;
    case WGPUAdapterType_CPU:
      return AdapterKind::cpu;
    default:
      return AdapterKind::virtual_gpu;
  }
}

std::string backend_name(WGPUBackendType type) {
  switch (type) {
    case WGPUBackendType_Vulkan:
      return "Vulkan";
    case WGPUBackendType_Metal:
      return "Metal";
    case WGPUBackendType_D3D12:
      return "D3D12";
    case WGPUBackendType_D3D11:
      return "D3D11";
    case WGPUBackendType_OpenGL:
      return "OpenGL";
    case WGPUBackendType_OpenGLES:
      return "OpenGL ES";
    case WGPUBackendType_WebGPU:
      return "WebGPU";
    default:
      return "unknown";
  }
}

AdapterInfo describe(WGPUAdapter adapter, size_t index) {
  WGPUAdapterInfo raw = WGPU_ADAPTER_INFO_INIT;
  AdapterInfo info;
  info.index = index;
  if (wgpuAdapterGetInfo(adapter, &raw) != WGPUStatus_Success) return info;
  info.name = text(raw.device);
  info.vendor = text(raw.vendor);
  info.driver = text(raw.description);
  info.backend = backend_name(raw.backendType);
  info.kind = kind_of(raw.adapterType);
  wgpuAdapterInfoFreeMembers(raw);
  return info;
}

std::string list_text(const std::vector<AdapterInfo>& list) {
  if (list.empty()) return "none (no Vulkan, Metal or D3D12 driver found)";
  std::string out;
  for (const AdapterInfo& info : list) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", info.index, info.name);
  }
  return out;
}

// The index of the adapter that `options` means. Throws Error naming the adapters there are.
size_t choose(const std::vector<AdapterInfo>& list, const DeviceOptions& options) {
  const std::string& wish = options.adapter;
  size_t index = 0;
  const auto [end, status] = std::from_chars(wish.data(), wish.data() + wish.size(), index);
  if (!wish.empty() && end == wish.data() + wish.size() && status == std::errc()) {
    if (index < list.size()) return index;
    fail("no GPU adapter {}; there are: {}", wish, list_text(list));
  }
  const AdapterInfo* best = nullptr;
  for (const AdapterInfo& info : list) {
    const std::string words = lower(info.name + "\n" + info.driver + "\n" + info.vendor);
    if (words.find(lower(wish)) == std::string::npos) continue;
    if (wish.empty() && !options.allow_cpu_adapter && info.kind == AdapterKind::cpu) continue;
    if (!best || info.kind < best->kind) best = &info;
  }
  if (best) return best->index;
  if (wish.empty()) fail("no GPU adapter; there are: {}", list_text(list));
  fail("no GPU adapter named '{}'; there are: {}", wish, list_text(list));
}

// The library's message as one line: without its headings, blank lines and drawings.
std::string one_line(std::string_view message) {
  std::string out;
  for (size_t at = 0; at < message.size();) {
    const size_t end = std::min(message.find('\n', at), message.size());
    std::string_view line = message.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    line = line.substr(first);
    if (line == "Caused by:" || line == "Validation Error") continue;
    out += (out.empty() ? "" : ": ") + std::string(line);
  }
  return out;
}

}  // namespace

std::string_view to_string(AdapterKind kind) {
  switch (kind) {
    case AdapterKind::discrete_gpu:
      return "discrete GPU";
    case AdapterKind::integrated_gpu:
      return "integrated GPU";
    case AdapterKind::virtual_gpu:
      return "virtual GPU";
    case AdapterKind::cpu:
      return "CPU";
  }
  return "unknown";
}

std::vector<AdapterInfo> list_adapters() {
  std::vector<AdapterInfo> list;
  for (const AdapterHandle& adapter : provider::adapters()) {
    list.push_back(describe(adapter.get(), list.size()));
  }
  return list;
}

struct Device::State {
  std::mutex mutex;  // guards error and lost: pipelines compile on several threads
  std::string error;
  std::string lost;
  std::atomic<uint64_t> buffers{0}, bind_groups{0}, pipelines{0}, layouts{0}, bytes{0};
  // Of the driving thread.
  Ticket submitted = 0;
  Ticket finished = 0;
  uint64_t unflushed = 0;                           // bytes written since the last submission
  std::deque<std::pair<Ticket, uint64_t>> staging;  // bytes in flight
  size_t callbacks = 0;                             // work-done callbacks still to come

  void record(const std::string& message) {
    if (ErrorScope::deliver(message)) return;
    const std::scoped_lock lock(mutex);
    if (error.empty()) error = message;
  }
};

Device::Device() : state_(std::make_unique<State>()) {}

Device::~Device() {
  if (!device_) return;
  try {
    if (!lost()) wait_idle();
  } catch (const std::exception& error) {
    log(LogLevel::warn, "{}", error.what());
  }
  queue_.reset();
  device_.reset();
  // Callbacks of work that never ended may still come: their target stays.
  if (state_->callbacks != 0) (void)state_.release();
}

std::unique_ptr<Device> Device::create(const DeviceOptions& options) {
  std::vector<AdapterHandle> adapters = provider::adapters();
  std::vector<AdapterInfo> list;
  list.reserve(adapters.size());
  for (const AdapterHandle& adapter : adapters) {
    list.push_back(describe(adapter.get(), list.size()));
  }
  const size_t index = choose(list, options);
  std::unique_ptr<Device> device(new Device);
  device->adapter_info_ = list[index];
  device->adapter_ = std::move(adapters[index]);
  with_context(fmt::format("GPU adapter '{}'", list[index].name), [&] {
    device->request(device->adapter_.get());
    device->capabilities_.is_cpu_adapter = list[index].kind == AdapterKind::cpu;
    device->timeout_seconds_ = options.timeout_seconds > 0            ? options.timeout_seconds
                               : device->capabilities_.is_cpu_adapter ? 900
                                                                      : 60;
    measure_capabilities(*device, device->capabilities_);
    device->check();
  });
  if (options.mask) options.mask(device->capabilities_);
  return device;
}

void Device::request(WGPUAdapter adapter) {
  const std::vector<WGPUFeatureName> features = provider::wanted_features(adapter);
  WGPULimits limits = WGPU_LIMITS_INIT;
  if (wgpuAdapterGetLimits(adapter, &limits) != WGPUStatus_Success) fail("cannot read its limits");
  WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
  descriptor.requiredFeatures = features.data();
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredLimits = &limits;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = state_.get();
  descriptor.uncapturedErrorCallbackInfo.callback = [](WGPUDevice const*, WGPUErrorType,
                                                       WGPUStringView message, void* user, void*) {
    static_cast<State*>(user)->record(one_line(text(message)));
  };
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.userdata1 = state_.get();
  descriptor.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason reason,
                                                  WGPUStringView message, void* user, void*) {
    if (reason == WGPUDeviceLostReason_CallbackCancelled) return;
    auto* state = static_cast<State*>(user);
    const std::scoped_lock lock(state->mutex);
    if (state->lost.empty()) state->lost = "GPU device lost: " + one_line(text(message));
  };
  struct Answer {
    WGPUDevice device = nullptr;
    std::string message = "no answer to the request for a device";
  } answer;
  WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.userdata1 = &answer;
  callback.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message,
                         void* user, void*) {
    static_cast<Answer*>(user)->device = device;
    static_cast<Answer*>(user)->message = one_line(text(message));
  };
  wgpuAdapterRequestDevice(adapter, &descriptor, callback);
  if (!answer.device && !features.empty() && provider::is_matrix_feature(features.back())) {
    descriptor.requiredFeatureCount = features.size() - 1;
    wgpuAdapterRequestDevice(adapter, &descriptor, callback);
  }
  if (!answer.device) fail("{}", answer.message);
  device_ = DeviceHandle(answer.device);
  queue_ = QueueHandle(wgpuDeviceGetQueue(device_.get()));
  read_limits();
}

void Device::read_limits() {
  WGPULimits limits = WGPU_LIMITS_INIT;
  if (wgpuDeviceGetLimits(device_.get(), &limits) != WGPUStatus_Success) {
    fail("cannot read the device's limits");
  }
  Capabilities& c = capabilities_;
  c.f16 = wgpuDeviceHasFeature(device_.get(), WGPUFeatureName_ShaderF16);
  c.timestamps = wgpuDeviceHasFeature(device_.get(), WGPUFeatureName_TimestampQuery);
  c.subgroups = provider::has_subgroups(adapter_.get());
  c.subgroups_need_enable = provider::subgroups_need_enable();
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  if (wgpuAdapterGetInfo(adapter_.get(), &info) == WGPUStatus_Success) {
    c.subgroup_min_size = info.subgroupMinSize;
    c.subgroup_max_size = info.subgroupMaxSize;
    wgpuAdapterInfoFreeMembers(info);
  }
  c.max_immediate_size = limits.maxImmediateSize;
  c.immediates = provider::has_immediates(adapter_.get()) && limits.maxImmediateSize > 0;
  c.matrices = provider::matrices(adapter_.get(), device_.get());
  c.unchecked_shaders = provider::has_unchecked_shaders();
  c.max_buffer_size = limits.maxBufferSize;
  c.max_binding_size = limits.maxStorageBufferBindingSize;
  c.max_storage_buffers = limits.maxStorageBuffersPerShaderStage;
  c.workgroup_memory = limits.maxComputeWorkgroupStorageSize;
  c.max_invocations = limits.maxComputeInvocationsPerWorkgroup;
  c.max_workgroups = limits.maxComputeWorkgroupsPerDimension;
  c.storage_alignment = limits.minStorageBufferOffsetAlignment;
  c.uniform_alignment = limits.minUniformBufferOffsetAlignment;
}

ObjectCounts Device::counts() const {
  return {state_->buffers.load(), state_->bind_groups.load(), state_->pipelines.load(),
          state_->layouts.load()};
}

void Device::check() {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->lost.empty()) fail("{}", state_->lost);
  if (state_->error.empty()) return;
  throw Error(std::exchange(state_->error, {}));
}

bool Device::lost() const {
  const std::scoped_lock lock(state_->mutex);
  return !state_->lost.empty();
}

void Device::count_buffer(uint64_t bytes) {
  ++state_->buffers;
  state_->bytes += bytes;
}
void Device::count_bind_group() { ++state_->bind_groups; }
void Device::count_pipeline() { ++state_->pipelines; }
void Device::count_layout() { ++state_->layouts; }
void Device::release_bytes(uint64_t bytes) { state_->bytes -= bytes; }
uint64_t Device::allocated_bytes() const { return state_->bytes.load(); }

Ticket Device::submit(WGPUCommandBuffer commands) {
  // Some libraries end the process when work is submitted to a lost device: learn of a loss first.
  if (!lost()) provider::poll(device_.get());
  check();
  const Ticket ticket = ++state_->submitted;
  wgpuQueueSubmit(queue_.get(), commands ? 1 : 0, commands ? &commands : nullptr);
  if (state_->unflushed) {
    state_->staging.emplace_back(ticket, std::exchange(state_->unflushed, 0));
  }
  WGPUQueueWorkDoneCallbackInfo info = WGPU_QUEUE_WORK_DONE_CALLBACK_INFO_INIT;
  info.mode = WGPUCallbackMode_AllowSpontaneous;
  info.userdata1 = state_.get();
  info.userdata2 = reinterpret_cast<void*>(ticket);  // NOLINT(performance-no-int-to-ptr)
  info.callback = [](WGPUQueueWorkDoneStatus, WGPUStringView, void* user, void* number) {
    auto* state = static_cast<State*>(user);
    state->finished = std::max(state->finished, reinterpret_cast<Ticket>(number));
    --state->callbacks;
  };
  ++state_->callbacks;
  wgpuQueueOnSubmittedWorkDone(queue_.get(), info);
  check();
  return ticket;
}

bool Device::done(Ticket ticket) {
  if (state_->finished >= ticket) return true;
  check();
  provider::poll(device_.get());
  return state_->finished >= ticket;
}

void Device::wait(Ticket ticket) {
  wait_until([&] { return state_->finished >= ticket; }, "submitted work");
}

void Device::wait_idle() { wait(state_->submitted); }

void Device::wait_until(const std::function<bool()>& ready, std::string_view what) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::microseconds(100);
  constexpr auto kLongestSleep = std::chrono::microseconds(500);
  const auto start = Clock::now();
  auto pause = std::chrono::microseconds(20);
  while (!ready()) {
    check();
    provider::poll(device_.get());
    if (ready()) break;
    const auto waited = Clock::now() - start;
    if (waited > std::chrono::duration<double>(timeout_seconds_)) {
      const std::scoped_lock lock(state_->mutex);
      state_->lost = fmt::format("GPU '{}': {} not done within {} s", adapter_info_.name, what,
                                 timeout_seconds_);
      fail("{}", state_->lost);
    }
    if (waited < kSpin) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 5 / 4, kLongestSleep);
  }
  check();
}

void Device::limit_staging(uint64_t bytes) {
  if (state_->unflushed >= kFlushAfter) submit(nullptr);
  const auto in_flight = [&] {
    uint64_t sum = state_->unflushed;
    while (!state_->staging.empty() && state_->staging.front().first <= state_->finished) {
      state_->staging.pop_front();
    }
    for (const auto& [ticket, size] : state_->staging) sum += size;
    return sum;
  };
  while (in_flight() + bytes > kStagingLimit && !state_->staging.empty()) {
    wait(state_->staging.front().first);
  }
}

void Device::write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> bytes) {
  check();
  buffer.check_range(*this, offset, bytes.size(), "write");
  if (offset % 4 != 0)
    fail("write to buffer '{}': offset {} is no multiple of 4", buffer.label(), offset);
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(bytes.size(), kWriteChunk);
    const size_t whole = size / 4 * 4;
    limit_staging(size);
    if (whole) wgpuQueueWriteBuffer(queue_.get(), buffer.handle(), offset, bytes.data(), whole);
    if (whole < size) {
      std::array<std::byte, 4> last{};
      std::memcpy(last.data(), bytes.data() + whole, size - whole);
      wgpuQueueWriteBuffer(queue_.get(), buffer.handle(), offset + whole, last.data(), 4);
    }
    state_->unflushed += round_up(size, 4);
    offset += size;
    bytes = bytes.subspan(size);
  }
  check();
}

std::vector<std::byte> Device::read(const Buffer& buffer, uint64_t offset, uint64_t size) {
  check();
  buffer.check_range(*this, offset, size, "read");
  std::vector<std::byte> out(size);
  if (size == 0) return out;
  const uint64_t begin = offset / 4 * 4;
  const uint64_t end = round_up(offset + size, 4);
  constexpr uint64_t kPiece = uint64_t{32} << 20;
  Readback readback(*this, 1, std::min(end - begin, kPiece));
  for (uint64_t at = begin; at < end; at += kPiece) {
    const uint64_t piece = std::min(kPiece, end - at);
    const std::span<const std::byte> got = readback.read_now(buffer, at, piece);
    const uint64_t from = std::max(at, offset);
    const uint64_t to = std::min(at + piece, offset + size);
    std::memcpy(out.data() + (from - offset), got.data() + (from - at), to - from);
  }
  return out;
}

}  // namespace wisp::gpu
