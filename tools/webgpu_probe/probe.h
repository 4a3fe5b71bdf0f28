// Helpers of the WebGPU probe: plain webgpu.h, nothing of the project, so that what it prints is
// what the library does. docs/webgpu.md tells how to run it and what was found.
#pragma once

#include <webgpu/webgpu.h>
#include <webgpu/wgpu.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace probe {

inline WGPUStringView view(std::string_view text) { return {text.data(), text.size()}; }
inline std::string text(WGPUStringView v) { return v.data ? std::string(v.data, v.length) : ""; }
inline double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

// Bits of the nearest f16, ties to even; infinity above its range.
uint16_t to_half(float value);

struct Gpu {
  WGPUInstance instance = nullptr;
  WGPUAdapter adapter = nullptr;
  WGPUDevice device = nullptr;
  WGPUQueue queue = nullptr;
  WGPULimits limits = WGPU_LIMITS_INIT;
  bool has_immediates = false;
  bool has_matrix = false;
  bool has_f16 = false;
  std::string uncaptured;  // the last message of the uncaptured-error callback
  int uncaptured_count = 0;
  std::string lost;
};

WGPUInstance make_instance();
std::vector<WGPUAdapter> adapters(WGPUInstance instance);
// A device of the first adapter whose name holds `part`, with every feature the probe uses and the
// adapter's limits. Exits when there is none.
Gpu* open(const std::string& part);

WGPUBuffer buffer(Gpu& gpu, uint64_t size, WGPUBufferUsage usage);
inline constexpr WGPUBufferUsage kStorage =
    0x80 | 0x4 | 0x8;  // storage, copy source, copy destination

// Runs body; returns the first message of the uncaptured-error callback on this thread, "" when
// there was none.
std::string& caught();
template <typename Body>
std::string scoped(Gpu&, Body&& body) {
  caught().clear();
  body();
  return std::exchange(caught(), {});
}
std::string first_lines(const std::string& message, int lines);

struct Kernel {
  WGPUComputePipeline pipeline = nullptr;
  WGPUBindGroupLayout layout = nullptr;
  std::string error;
};
struct KernelOptions {
  uint32_t bindings = 1;  // read_write storage bindings 0.. of group 0
  uint32_t immediate_size = 0;
  bool dynamic_uniform = false;  // one more binding: a uniform with a dynamic offset
  bool checked = false;          // keep the library's bounds checks
};
Kernel kernel(Gpu& gpu, std::string_view wgsl, const KernelOptions& options = {});
WGPUBindGroup make_group(Gpu& gpu, const Kernel& kernel, const std::vector<WGPUBuffer>& buffers);

void submit(Gpu& gpu, WGPUCommandEncoder encoder);
// Runs the kernel once over `groups` workgroups.
void run(Gpu& gpu, const Kernel& kernel, WGPUBindGroup group, uint32_t groups);
// Polls without waiting until the work submitted so far is done. False after `seconds`.
bool finish(Gpu& gpu, double seconds = 30);
std::vector<uint8_t> read(Gpu& gpu, WGPUBuffer source, uint64_t offset, uint64_t size);

// The parts of the program.
void facts(Gpu& gpu);
void language(Gpu& gpu);
void matrices(Gpu& gpu);
void sizes(Gpu& gpu);
void timing(Gpu& gpu);
void packed_dot(Gpu& gpu);
void timestamps(Gpu& gpu);
void stability(Gpu& gpu);
void waiting(Gpu& gpu);
void errors(Gpu& gpu);
void threads(Gpu& gpu);
// Runs each dangerous call in a process of its own and prints how that ended.
void faults(const char* program, const std::string& adapter);
int run_fault(const std::string& name, const std::string& adapter);

}  // namespace probe
