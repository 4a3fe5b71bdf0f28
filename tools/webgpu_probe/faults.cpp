// What stops the process: each call is made in a process of its own, told apart by its exit.
#include <sys/wait.h>

#include <cstdlib>
#include <map>

#include "probe.h"

namespace probe {
namespace {

constexpr const char* kTiny =
    "@group(0) @binding(0) var<storage, read_write> data: array<u32>;"
    "@compute @workgroup_size(1) fn main() { data[0] = data[0] + 1u; }";

void after(Gpu& gpu) {
  finish(gpu, 5);
  std::printf("went on; uncaptured errors %d%s%s%s%s", gpu.uncaptured_count,
              gpu.uncaptured_count ? ": " : "", first_lines(gpu.uncaptured, 3).c_str(),
              gpu.lost.empty() ? "" : "; device lost, ", gpu.lost.c_str());
}

WGPUBuffer small(Gpu& gpu) { return buffer(gpu, 256, kStorage); }

void copy_past_the_end(Gpu& gpu) {
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  wgpuCommandEncoderCopyBufferToBuffer(encoder, small(gpu), 0, small(gpu), 128, 256);
  submit(gpu, encoder);
}

void copy_into_itself(Gpu& gpu) {
  WGPUBuffer one = small(gpu);
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  wgpuCommandEncoderCopyBufferToBuffer(encoder, one, 0, one, 128, 64);
  submit(gpu, encoder);
}

void invalid_pipeline(Gpu& gpu) {
  Kernel bad = kernel(gpu, "this is not WGSL");
  run(gpu, bad, make_group(gpu, bad, {small(gpu)}), 1);
}

void missing_bind_group(Gpu& gpu) {
  Kernel good = kernel(gpu, kTiny);
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(encoder, nullptr);
  wgpuComputePassEncoderSetPipeline(pass, good.pipeline);
  wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
  wgpuComputePassEncoderEnd(pass);
  submit(gpu, encoder);
}

void too_many_workgroups(Gpu& gpu) {
  Kernel good = kernel(gpu, kTiny);
  run(gpu, good, make_group(gpu, good, {small(gpu)}), 1u << 20);
}

void unaligned_write(Gpu& gpu) { wgpuQueueWriteBuffer(gpu.queue, small(gpu), 2, "abcd", 3); }
void write_past_the_end(Gpu& gpu) {
  static char data[1024];
  wgpuQueueWriteBuffer(gpu.queue, small(gpu), 0, data, sizeof data);
}
void huge_buffer(Gpu& gpu) { wgpuBufferRelease(buffer(gpu, uint64_t{1} << 50, kStorage)); }
void bind_huge_buffer(Gpu& gpu) {
  Kernel good = kernel(gpu, kTiny);
  run(gpu, good, make_group(gpu, good, {buffer(gpu, uint64_t{1} << 50, kStorage)}), 1);
}
void zero_buffer(Gpu& gpu) {
  Kernel good = kernel(gpu, kTiny);
  make_group(gpu, good, {buffer(gpu, 0, kStorage)});
}

void map(Gpu& gpu, WGPUBuffer target, size_t size) {
  WGPUBufferMapCallbackInfo info = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  info.mode = WGPUCallbackMode_AllowSpontaneous;
  info.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void*, void*) {
    std::printf("map status %d %s; ", status, first_lines(text(message), 2).c_str());
  };
  wgpuBufferMapAsync(target, WGPUMapMode_Read, 0, size, info);
  finish(gpu, 5);
}
WGPUBuffer mappable(Gpu& gpu) {
  return buffer(gpu, 256, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
}
void map_without_usage(Gpu& gpu) { map(gpu, small(gpu), 256); }
void map_twice(Gpu& gpu) {
  WGPUBuffer target = mappable(gpu);
  map(gpu, target, 256);
  map(gpu, target, 256);
}
void range_of_unmapped(Gpu& gpu) {
  std::printf("%p; ", wgpuBufferGetConstMappedRange(mappable(gpu), 0, 256));
}
void range_past_the_end(Gpu& gpu) {
  WGPUBuffer target = mappable(gpu);
  map(gpu, target, 256);
  std::printf("%p; ", wgpuBufferGetConstMappedRange(target, 0, 1024));
}
void unmap_unmapped(Gpu& gpu) { wgpuBufferUnmap(mappable(gpu)); }
void copy_to_mapped(Gpu& gpu) {
  WGPUBuffer target = mappable(gpu);
  map(gpu, target, 256);
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  wgpuCommandEncoderCopyBufferToBuffer(encoder, small(gpu), 0, target, 0, 256);
  submit(gpu, encoder);
}
void submit_twice(Gpu& gpu) {
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  WGPUCommandBuffer commands = wgpuCommandEncoderFinish(encoder, nullptr);
  wgpuQueueSubmit(gpu.queue, 1, &commands);
  wgpuQueueSubmit(gpu.queue, 1, &commands);
}
void destroyed_device(Gpu& gpu) {
  Kernel good = kernel(gpu, kTiny);
  WGPUBuffer one = small(gpu);
  WGPUBindGroup group = make_group(gpu, good, {one});
  wgpuDeviceDestroy(gpu.device);
  wgpuDevicePoll(gpu.device, false, nullptr);
  std::printf("lost: '%s'; ", gpu.lost.c_str());
  small(gpu);
  run(gpu, good, group, 1);
  kernel(gpu, kTiny);
}
void release_device_first(Gpu& gpu) {
  WGPUBuffer one = small(gpu);
  wgpuDeviceRelease(gpu.device);
  wgpuBufferRelease(one);
  std::printf("went on");
  std::fflush(stdout);
  std::_Exit(0);
}
void destroyed_buffer(Gpu& gpu) {
  Kernel good = kernel(gpu, kTiny);
  WGPUBuffer one = small(gpu);
  WGPUBindGroup group = make_group(gpu, good, {one});
  wgpuBufferDestroy(one);
  run(gpu, good, group, 1);
}
void drop_unfinished(Gpu& gpu) {
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(encoder, nullptr);
  wgpuComputePassEncoderRelease(pass);
  wgpuCommandEncoderRelease(encoder);
}
void big_immediates(Gpu& gpu) {
  Kernel good = kernel(gpu, kTiny);
  static char data[4096];
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(encoder, nullptr);
  wgpuComputePassEncoderSetPipeline(pass, good.pipeline);
  wgpuComputePassEncoderSetImmediates(pass, 0, data, sizeof data);
  wgpuComputePassEncoderEnd(pass);
  submit(gpu, encoder);
}
void foreign_buffer(Gpu& gpu) {
  Gpu* other = open("");
  Kernel good = kernel(gpu, kTiny);
  run(gpu, good, make_group(gpu, good, {small(*other)}), 1);
}
void endless_loop(Gpu& gpu) {
  // Long, not endless: a hung GPU would have to be reset.
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  wgpuAdapterGetInfo(gpu.adapter, &info);
  const bool cpu = info.adapterType == WGPUAdapterType_CPU;
  Kernel loop = kernel(gpu, std::string("@group(0) @binding(0) var<storage, read_write> data:"
                                        " array<atomic<u32>>;"
                                        "@compute @workgroup_size(1) fn main() {"
                                        "  for (var i = 0u; i < ") +
                                (cpu ? "4000000000" : "10000000") +
                                "u; i++) { if (atomicLoad(&data[0]) == 1u) { break; } } }");
  run(gpu, loop, make_group(gpu, loop, {small(gpu)}), 1);
  const double start = now_us();
  const bool done = finish(gpu, 4);
  std::printf("%s after %.1f s; ", done ? "done" : "still running", (now_us() - start) / 1e6);
  std::fflush(stdout);
  std::_Exit(0);
}
void null_buffer(Gpu& gpu) { wgpuQueueWriteBuffer(gpu.queue, nullptr, 0, "abcd", 4); }

const std::map<std::string, void (*)(Gpu&)>& table() {
  static const std::map<std::string, void (*)(Gpu&)> all = {
      {"copy_past_the_end", copy_past_the_end},
      {"copy_into_itself", copy_into_itself},
      {"invalid_pipeline", invalid_pipeline},
      {"missing_bind_group", missing_bind_group},
      {"too_many_workgroups", too_many_workgroups},
      {"unaligned_write", unaligned_write},
      {"write_past_the_end", write_past_the_end},
      {"huge_buffer", huge_buffer},
      {"bind_huge_buffer", bind_huge_buffer},
      {"zero_buffer", zero_buffer},
      {"map_without_usage", map_without_usage},
      {"map_twice", map_twice},
      {"range_of_unmapped", range_of_unmapped},
      {"range_past_the_end", range_past_the_end},
      {"unmap_unmapped", unmap_unmapped},
      {"copy_to_mapped", copy_to_mapped},
      {"submit_twice", submit_twice},
      {"destroyed_device", destroyed_device},
      {"release_device_first", release_device_first},
      {"destroyed_buffer", destroyed_buffer},
      {"drop_unfinished", drop_unfinished},
      {"big_immediates", big_immediates},
      {"foreign_buffer", foreign_buffer},
      {"endless_loop", endless_loop},
      {"null_buffer", null_buffer}};
  return all;
}

}  // namespace

int run_fault(const std::string& name, const std::string& adapter) {
  Gpu* gpu = open(adapter);
  table().at(name)(*gpu);
  after(*gpu);
  std::fflush(stdout);
  std::_Exit(0);
}

void faults(const char* program, const std::string& adapter) {
  std::printf("\n## Calls that may stop the process\n");
  for (const auto& [name, call] : table()) {
    const std::string command = std::string("NODEVICE_SELECT=1 '") + program + "' '" + adapter +
                                "' --fault " + name + " 2>/tmp/webgpu_probe_fault";
    std::printf("%-22s ", name.c_str());
    std::fflush(stdout);
    const int status = std::system(command.c_str());
    if (status != 0) {
      std::printf("STOPPED (status %d)", WIFEXITED(status) ? WEXITSTATUS(status) : status);
      if (std::FILE* file = std::fopen("/tmp/webgpu_probe_fault", "r")) {
        std::string all(4096, 0);
        all.resize(std::fread(all.data(), 1, all.size(), file));
        std::printf(": %s", first_lines(all, 4).c_str());
        std::fclose(file);
      }
    }
    std::printf("\n");
  }
}

}  // namespace probe
