// Adapters and devices: choosing one, its capabilities, its error state, waiting for its work.
//
// Thread rule: one thread drives a Device and everything made from it (buffers, recordings,
// commands, readbacks). Only PipelineCache (kernel.h) may be used from several threads.
// Lifetime rule: a Device outlives what is made from it.
#pragma once

#include <webgpu/webgpu.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/capabilities.h"
#include "gpu/handle.h"

namespace wisp::gpu {

enum class AdapterKind { discrete_gpu, integrated_gpu, virtual_gpu, cpu };
std::string_view to_string(AdapterKind kind);

struct AdapterInfo {
  size_t index = 0;     // place in list_adapters(), what --adapter INDEX takes
  std::string name;     // such as "NVIDIA H200"
  std::string vendor;   // as the driver tells it; may be empty
  std::string driver;   // name and version, such as "Mesa 25.0.7"
  std::string backend;  // "Vulkan", "Metal", "D3D12"
  AdapterKind kind = AdapterKind::cpu;
};

// All adapters of this machine, in the provider's order. Empty where there is none or no driver;
// never throws.
std::vector<AdapterInfo> list_adapters();

struct DeviceOptions {
  // "" takes the best adapter (discrete, integrated, virtual, CPU), a number that of this index,
  // other text the best one whose name, driver or vendor contains it, whatever the case.
  std::string adapter{};
  bool allow_cpu_adapter = true;  // false: "" refuses CPU drivers
  // Called once with what the device has; may switch optional features off or lower limits.
  std::function<void(Capabilities&)> mask{};
  // Waits longer than this for submitted work become an Error. 0: 60 s, 900 s for CPU adapters.
  double timeout_seconds = 0;
};

// Objects made from a device since its creation. A step must not add to them.
struct ObjectCounts {
  uint64_t buffers = 0;
  uint64_t bind_groups = 0;
  uint64_t pipelines = 0;
  uint64_t layouts = 0;  // of bind groups and pipelines
  uint64_t all() const { return buffers + bind_groups + pipelines + layouts; }
  bool operator==(const ObjectCounts&) const = default;
};

// Numbers submissions of one device from 1 on; work of ticket n is done when a later one is.
using Ticket = uint64_t;

class Buffer;

class Device {
 public:
  // A device with all optional features that wisp uses and the adapter's largest limits. Throws
  // Error naming the adapters there are when none fits, and with the library's message when it
  // refuses.
  static std::unique_ptr<Device> create(const DeviceOptions& options = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const AdapterInfo& adapter() const { return adapter_info_; }
  const Capabilities& capabilities() const { return capabilities_; }
  ObjectCounts counts() const;

  // Throws the first error that a callback recorded since the last check, and clears it. A lost
  // device throws at each check. Every call below begins and ends with it.
  void check();
  bool lost() const;

  // Copies `bytes` to `buffer` at `offset` (a multiple of 4), before everything submitted later and
  // after everything submitted earlier. Sizes that are no multiple of 4 set the rest of the last
  // word to zero. At most 64 MiB wait in staging memory: larger writes wait for the device. Throws
  // Error when the range does not fit.
  void write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> bytes);

  // The bytes [offset, offset + size) of a buffer, once all submitted work is done. Offset and size
  // may be odd. For tests and rare reads; steps use Readback (buffer.h).
  std::vector<std::byte> read(const Buffer& buffer, uint64_t offset, uint64_t size);

  // Blocks until the work of `ticket` is done. Spins for some microseconds, then sleeps in short
  // pieces. Throws Error when the device is lost or the timeout passes (the device then counts as
  // lost).
  void wait(Ticket ticket);
  void wait_idle();
  bool done(Ticket ticket);

  // For this layer: submits a finished command buffer (null: only the pending writes).
  Ticket submit(WGPUCommandBuffer commands);
  // For this layer: polls until `ready` is true; throws as wait().
  void wait_until(const std::function<bool()>& ready, std::string_view what);
  WGPUDevice handle() const { return device_.get(); }
  WGPUQueue queue() const { return queue_.get(); }
  void count_buffer(uint64_t bytes);
  void count_bind_group();
  void count_pipeline();
  void count_layout();
  // Bytes of all live buffers made through this layer.
  uint64_t allocated_bytes() const;
  void release_bytes(uint64_t bytes);

 private:
  struct State;  // what callbacks write; outlives the device when work hangs
  Device();
  void request(WGPUAdapter adapter);
  void read_limits();
  void limit_staging(uint64_t bytes);

  AdapterInfo adapter_info_;
  Capabilities capabilities_;
  double timeout_seconds_ = 60;
  std::unique_ptr<State> state_;
  AdapterHandle adapter_;
  DeviceHandle device_;
  QueueHandle queue_;
};

}  // namespace wisp::gpu
