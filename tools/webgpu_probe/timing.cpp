// What dispatches, recording, packed dot products and timestamps cost.
#include <algorithm>
#include <functional>

#include "probe.h"

namespace probe {
namespace {

constexpr int kDispatches = 2000;

struct Cost {
  double record_us = 0;  // CPU time of recording one dispatch
  double total_us = 0;   // from the start of recording to the end of the work, per dispatch
  double gpu_us = 0;     // from submission to the end of the work, per dispatch
};

// Median of five runs of `body`, which records kDispatches dispatches into a pass it may restart.
Cost measure(Gpu& gpu, const std::function<void(WGPUCommandEncoder)>& body,
             int count = kDispatches) {
  std::vector<Cost> all;
  for (int i = 0; i < 6; ++i) {
    finish(gpu);
    const double start = now_us();
    WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
    body(encoder);
    WGPUCommandBuffer commands = wgpuCommandEncoderFinish(encoder, nullptr);
    const double recorded = now_us();
    wgpuQueueSubmit(gpu.queue, 1, &commands);
    finish(gpu);
    const double end = now_us();
    wgpuCommandBufferRelease(commands);
    wgpuCommandEncoderRelease(encoder);
    if (i > 0)
      all.push_back({(recorded - start) / count, (end - start) / count, (end - recorded) / count});
  }
  std::sort(all.begin(), all.end(),
            [](const Cost& a, const Cost& b) { return a.total_us < b.total_us; });
  return all[all.size() / 2];
}

void print(const char* what, const Cost& cost) {
  std::printf("%-58s record+finish %6.2f us, submit to done %6.2f us, both %6.2f us\n", what,
              cost.record_us, cost.gpu_us, cost.total_us);
}

const char* kIncrement =
    "@group(0) @binding(0) var<storage, read_write> data: array<u32>;"
    "@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3<u32>) {"
    " data[id.x] = data[id.x] + 1u; }";

}  // namespace

void timing(Gpu& gpu) {
  std::printf("\n## Cost of a dispatch (%d dependent dispatches of 32 threads)\n", kDispatches);
  const Kernel one = kernel(gpu, kIncrement);
  WGPUBuffer data = buffer(gpu, 4096, kStorage);
  WGPUBindGroup group = make_group(gpu, one, {data}), group2 = make_group(gpu, one, {data});
  const auto begin = [](WGPUCommandEncoder e) {
    return wgpuCommandEncoderBeginComputePass(e, nullptr);
  };
  const auto end = [](WGPUComputePassEncoder pass) {
    wgpuComputePassEncoderEnd(pass);
    wgpuComputePassEncoderRelease(pass);
  };
  print("one pass, same pipeline and bind group", measure(gpu, [&](WGPUCommandEncoder e) {
          WGPUComputePassEncoder pass = begin(e);
          wgpuComputePassEncoderSetPipeline(pass, one.pipeline);
          wgpuComputePassEncoderSetBindGroup(pass, 0, group, 0, nullptr);
          for (int i = 0; i < kDispatches; ++i)
            wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
          end(pass);
        }));
  print("one pass, bind group set each time", measure(gpu, [&](WGPUCommandEncoder e) {
          WGPUComputePassEncoder pass = begin(e);
          wgpuComputePassEncoderSetPipeline(pass, one.pipeline);
          for (int i = 0; i < kDispatches; ++i) {
            wgpuComputePassEncoderSetBindGroup(pass, 0, i % 2 ? group : group2, 0, nullptr);
            wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
          }
          end(pass);
        }));
  const Kernel other = kernel(gpu, std::string(kIncrement) + "// another");
  print("one pass, pipeline and bind group set each time", measure(gpu, [&](WGPUCommandEncoder e) {
          WGPUComputePassEncoder pass = begin(e);
          for (int i = 0; i < kDispatches; ++i) {
            wgpuComputePassEncoderSetPipeline(pass, i % 2 ? one.pipeline : other.pipeline);
            wgpuComputePassEncoderSetBindGroup(pass, 0, i % 2 ? group : group2, 0, nullptr);
            wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
          }
          end(pass);
        }));
  print("one pass per dispatch", measure(gpu, [&](WGPUCommandEncoder e) {
          for (int i = 0; i < kDispatches; ++i) {
            WGPUComputePassEncoder pass = begin(e);
            wgpuComputePassEncoderSetPipeline(pass, one.pipeline);
            wgpuComputePassEncoderSetBindGroup(pass, 0, group, 0, nullptr);
            wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
            end(pass);
          }
        }));
  // Independent dispatches: each reads one buffer and writes another that no other one touches.
  {
    const Kernel two = kernel(gpu,
                              "@group(0) @binding(0) var<storage, read_write> a: array<u32>;"
                              "@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) "
                              "id: vec3<u32>) { a[id.x] = 1u; }");
    std::vector<WGPUBindGroup> groups;
    for (int i = 0; i < 64; ++i)
      groups.push_back(make_group(gpu, two, {buffer(gpu, 256, kStorage)}));
    print("one pass, 64 independent buffers in turn", measure(gpu, [&](WGPUCommandEncoder e) {
            WGPUComputePassEncoder pass = begin(e);
            wgpuComputePassEncoderSetPipeline(pass, two.pipeline);
            for (int i = 0; i < kDispatches; ++i) {
              wgpuComputePassEncoderSetBindGroup(pass, 0, groups[i % 64], 0, nullptr);
              wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
            }
            end(pass);
          }));
  }
  for (uint32_t bindings : {4u, 8u, 10u}) {
    std::string source;
    std::string sum;
    std::vector<WGPUBuffer> buffers;
    for (uint32_t i = 0; i < bindings; ++i) {
      source += "@group(0) @binding(" + std::to_string(i) + ") var<storage, read_write> b" +
                std::to_string(i) + ": array<u32>;";
      sum += (i ? " + b" : "b") + std::to_string(i) + "[id.x]";
      buffers.push_back(buffer(gpu, 4096, kStorage));
    }
    const Kernel many =
        kernel(gpu,
               source +
                   "@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: "
                   "vec3<u32>) { b0[id.x] = " +
                   sum + "; }",
               {.bindings = bindings});
    WGPUBindGroup a = make_group(gpu, many, buffers), b = make_group(gpu, many, buffers);
    const std::string name =
        "one pass, bind group of " + std::to_string(bindings) + " buffers each time";
    print(name.c_str(), measure(gpu, [&](WGPUCommandEncoder e) {
            WGPUComputePassEncoder pass = begin(e);
            wgpuComputePassEncoderSetPipeline(pass, many.pipeline);
            for (int i = 0; i < kDispatches; ++i) {
              wgpuComputePassEncoderSetBindGroup(pass, 0, i % 2 ? a : b, 0, nullptr);
              wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
            }
            end(pass);
          }));
  }
  if (gpu.has_immediates) {
    const Kernel small = kernel(
        gpu,
        "struct P { a: u32, b: u32, c: u32, d: u32 } var<immediate> p: P;"
        "@group(0) @binding(0) var<storage, read_write> data: array<u32>;"
        "@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3<u32>) {"
        " data[id.x] = data[id.x] + p.a; }",
        {.immediate_size = 16});
    WGPUBindGroup g = make_group(gpu, small, {data}), g2 = make_group(gpu, small, {data});
    print("one pass, bind group and 16 bytes of immediates each time",
          measure(gpu, [&](WGPUCommandEncoder e) {
            WGPUComputePassEncoder pass = begin(e);
            wgpuComputePassEncoderSetPipeline(pass, small.pipeline);
            for (int i = 0; i < kDispatches; ++i) {
              const uint32_t words[4] = {1, 2, 3, static_cast<uint32_t>(i)};
              wgpuComputePassEncoderSetBindGroup(pass, 0, i % 2 ? g : g2, 0, nullptr);
              wgpuComputePassEncoderSetImmediates(pass, 0, words, 16);
              wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
            }
            end(pass);
          }));
  }
  {
    const Kernel dynamic = kernel(
        gpu,
        "struct P { a: u32, b: u32, c: u32, d: u32 }"
        "@group(0) @binding(0) var<storage, read_write> data: array<u32>;"
        "@group(0) @binding(1) var<uniform> p: P;"
        "@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3<u32>) {"
        " data[id.x] = data[id.x] + p.a; }",
        {.dynamic_uniform = true});
    WGPUBuffer uniforms =
        buffer(gpu, 256 * 1024, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst);
    WGPUBindGroup g = make_group(gpu, dynamic, {data, uniforms});
    print("one pass, dynamic uniform offset each time", measure(gpu, [&](WGPUCommandEncoder e) {
            WGPUComputePassEncoder pass = begin(e);
            wgpuComputePassEncoderSetPipeline(pass, dynamic.pipeline);
            for (int i = 0; i < kDispatches; ++i) {
              const uint32_t offset = 256 * (i % 1000);
              wgpuComputePassEncoderSetBindGroup(pass, 0, g, 1, &offset);
              wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
            }
            end(pass);
          }));
  }
  print("empty submissions", measure(
                                 gpu,
                                 [&](WGPUCommandEncoder) {
                                   for (int i = 0; i < 200; ++i)
                                     wgpuQueueSubmit(gpu.queue, 0, nullptr);
                                 },
                                 200));
  print("writes of 4 KiB (wgpuQueueWriteBuffer)", measure(
                                                      gpu,
                                                      [&](WGPUCommandEncoder) {
                                                        static char bytes[4096];
                                                        for (int i = 0; i < 200; ++i)
                                                          wgpuQueueWriteBuffer(gpu.queue, data, 0,
                                                                               bytes, 4096);
                                                      },
                                                      200));
}

void packed_dot(Gpu& gpu) {
  std::printf("\n## dot4I8Packed against unpacking (dependent sums in registers)\n");
  const std::string head =
      "@group(0) @binding(0) var<storage, read_write> o: array<i32>;"
      "@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {"
      "var a = id.x * 2654435761u; var b = id.x ^ 0x01020304u; var s = vec4<i32>();";
  const std::string tail = " o[id.x] = s.x + s.y + s.z + s.w; }";
  const auto loop = [&](const std::string& body) {
    return head + "for (var i = 0u; i < 512u; i++) { a += 0x01010101u; b ^= a;" + body + "}" + tail;
  };
  std::string packed, unpacked, floats;
  for (const char* lane : {"x", "y", "z", "w"}) {
    const std::string l = lane;
    packed += "s." + l + " += dot4I8Packed(a, b);";
    unpacked += "{ let p = unpack4xI8(a) * unpack4xI8(b); s." + l + " += p.x + p.y + p.z + p.w; }";
    floats += "s." + l + " += i32(dot(vec4<f32>(unpack4xI8(a)), vec4<f32>(unpack4xI8(b))));";
  }
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  wgpuAdapterGetInfo(gpu.adapter, &info);
  const uint32_t groups = info.adapterType == WGPUAdapterType_CPU ? 64 : 16384;
  WGPUBuffer out = buffer(gpu, groups * 256 * 4, kStorage);
  for (const auto& [name, body] :
       {std::pair{"dot4I8Packed", packed}, std::pair{"unpack4xI8, i32", unpacked},
        std::pair{"unpack4xI8, f32", floats}}) {
    const Kernel k = kernel(gpu, loop(body));
    if (!k.error.empty()) {
      std::printf("%s: %s\n", name, first_lines(k.error, 2).c_str());
      continue;
    }
    WGPUBindGroup group = make_group(gpu, k, {out});
    double best = 1e30;
    for (int i = 0; i < 4; ++i) {
      finish(gpu);
      const double start = now_us();
      run(gpu, k, group, groups);
      finish(gpu);
      best = std::min(best, now_us() - start);
    }
    std::printf("%-18s %8.0f us, %.2f T multiply-adds a second\n", name, best,
                double(groups) * 256 * 512 * 4 * 4 / best / 1e6);
  }
  std::printf("## Bounds checks (sum over 64 MiB, 16 loads a thread)\n");
  const uint64_t words = info.adapterType == WGPUAdapterType_CPU ? 1u << 22 : 1u << 24;
  WGPUBuffer source = buffer(gpu, words * 4, kStorage), sums = buffer(gpu, words / 4, kStorage);
  const std::string reader =
      "@group(0) @binding(0) var<storage, read_write> a: array<u32>;"
      "@group(0) @binding(1) var<storage, read_write> o: array<u32>;"
      "@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>, "
      "@builtin(num_workgroups) n: vec3<u32>) {"
      " var s = 0u; for (var i = 0u; i < 16u; i++) { s += a[id.x + i * n.x * 256u]; } o[id.x] = s; "
      "}";
  for (bool checked : {true, false}) {
    const Kernel k = kernel(gpu, reader, {.bindings = 2, .checked = checked});
    WGPUBindGroup group = make_group(gpu, k, {source, sums});
    const Cost cost = measure(
        gpu,
        [&](WGPUCommandEncoder e) {
          WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(e, nullptr);
          wgpuComputePassEncoderSetPipeline(pass, k.pipeline);
          wgpuComputePassEncoderSetBindGroup(pass, 0, group, 0, nullptr);
          for (int i = 0; i < 20; ++i)
            wgpuComputePassEncoderDispatchWorkgroups(pass, words / 16 / 256, 1, 1);
          wgpuComputePassEncoderEnd(pass);
          wgpuComputePassEncoderRelease(pass);
        },
        20);
    std::printf("%-12s %.1f us a pass, %.0f GB/s\n", checked ? "checked" : "unchecked", cost.gpu_us,
                words * 4 / cost.gpu_us / 1e3);
  }
}

void timestamps(Gpu& gpu) {
  std::printf("\n## Timestamps\nperiod %.3f ns\n", wgpuQueueGetTimestampPeriod(gpu.queue));
  WGPUQuerySetDescriptor descriptor = WGPU_QUERY_SET_DESCRIPTOR_INIT;
  descriptor.type = WGPUQueryType_Timestamp;
  descriptor.count = 4096;
  WGPUQuerySet set = nullptr;
  std::string error = scoped(gpu, [&] { set = wgpuDeviceCreateQuerySet(gpu.device, &descriptor); });
  std::printf("query set of 4096: %s\n", error.empty() ? "made" : first_lines(error, 2).c_str());
  if (!error.empty()) return;
  const Kernel one = kernel(gpu, kIncrement);
  WGPUBindGroup group = make_group(gpu, one, {buffer(gpu, 1u << 22, kStorage)});
  WGPUBuffer resolved =
      buffer(gpu, 4096 * 8, WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc);
  const int count = 500;
  for (bool inside : {false, true}) {
    error = scoped(gpu, [&] {
      WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
      WGPUComputePassEncoder pass = nullptr;
      for (int i = 0; i < count; ++i) {
        if (!inside || i == 0) {
          WGPUPassTimestampWrites writes = WGPU_PASS_TIMESTAMP_WRITES_INIT;
          writes.querySet = set;
          writes.beginningOfPassWriteIndex = i * 2;
          writes.endOfPassWriteIndex = i * 2 + 1;
          WGPUComputePassDescriptor pass_descriptor = WGPU_COMPUTE_PASS_DESCRIPTOR_INIT;
          if (!inside) pass_descriptor.timestampWrites = &writes;
          pass = wgpuCommandEncoderBeginComputePass(encoder, &pass_descriptor);
          wgpuComputePassEncoderSetPipeline(pass, one.pipeline);
          wgpuComputePassEncoderSetBindGroup(pass, 0, group, 0, nullptr);
        }
        if (inside) wgpuComputePassEncoderWriteTimestamp(pass, set, i * 2);
        wgpuComputePassEncoderDispatchWorkgroups(pass, 1024, 1, 1);
        if (inside) wgpuComputePassEncoderWriteTimestamp(pass, set, i * 2 + 1);
        if (!inside || i == count - 1) {
          wgpuComputePassEncoderEnd(pass);
          wgpuComputePassEncoderRelease(pass);
        }
      }
      wgpuCommandEncoderResolveQuerySet(encoder, set, 0, count * 2, resolved, 0);
      submit(gpu, encoder);
    });
    if (!error.empty()) {
      std::printf("%s\n", first_lines(error, 2).c_str());
      continue;
    }
    const auto bytes = read(gpu, resolved, 0, count * 16);
    std::vector<uint64_t> ticks(count * 2);
    std::memcpy(ticks.data(), bytes.data(), bytes.size());
    double own = 0, between = 0;
    for (int i = 0; i < count; ++i) own += double(ticks[i * 2 + 1] - ticks[i * 2]);
    for (int i = 1; i < count; ++i) between += double(ticks[i * 2 + 1]) - double(ticks[i * 2 - 1]);
    const double period = wgpuQueueGetTimestampPeriod(gpu.queue) / 1000;
    std::printf("%s: mean begin to end %.2f us, mean end to end %.2f us, whole %.0f us\n",
                inside ? "inside one pass" : "one pass each", own * period / count,
                between * period / (count - 1), double(ticks.back() - ticks[0]) * period);
  }
}

}  // namespace probe
