// Whether bits are stable, how waiting behaves, what errors look like, what threads may do.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "probe.h"

namespace probe {

void stability(Gpu& gpu) {
  std::printf("\n## Bits\n");
  // Sums of 4096 products by 256 threads: explicit fma, then a shuffle or shared-memory tree.
  const auto source = [](bool explicit_fma, int reduce) {
    std::string s =
        "@group(0) @binding(0) var<storage, read_write> a: array<f32>;"
        "@group(0) @binding(1) var<storage, read_write> o: array<f32>;"
        "var<workgroup> w: array<f32, 256>;"
        "@compute @workgroup_size(256) fn main(@builtin(local_invocation_index) i: u32, "
        "@builtin(workgroup_id) g: vec3<u32>, @builtin(subgroup_size) sg: u32) {"
        "var s = 0.0; for (var j = 0u; j < 16u; j++) { let x = a[i + j * 256u]; let y = a[(i * 7u "
        "+ j) % 4096u];";
    s += explicit_fma ? "s = fma(x, y, s);" : "s = s + x * y;";
    s += "}";
    if (reduce == 0) {
      s += "w[i] = s; for (var d = 128u; d > 0u; d /= 2u) { workgroupBarrier(); if (i < d) { w[i] "
           "+= w[i + d]; } } workgroupBarrier(); if (i == 0u) { o[g.x] = w[0]; } }";
    } else if (reduce == 1) {
      s += "s += subgroupShuffleXor(s, 1u); s += subgroupShuffleXor(s, 2u); s += "
           "subgroupShuffleXor(s, 4u); if (i == 0u) { o[g.x] = s; } }";
    } else {
      s += "let t = subgroupAdd(s); if (i == 0u) { o[g.x] = t; } }";
    }
    return s;
  };
  std::vector<float> a(4096);
  uint32_t state = 12345;
  for (float& x : a) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(state)) / 1e9f;
  }
  WGPUBuffer input = buffer(gpu, 4096 * 4, kStorage);
  wgpuQueueWriteBuffer(gpu.queue, input, 0, a.data(), 4096 * 4);
  // The same sums on the CPU, in both ways, of the first shuffle octet and of the shared tree.
  const auto lane = [&](int i, bool fused) {
    float s = 0;
    for (int j = 0; j < 16; ++j) {
      const float x = a[i + j * 256], y = a[(i * 7 + j) % 4096];
      volatile float product = x * y;
      s = fused ? std::fma(x, y, s) : s + product;
    }
    return s;
  };
  const auto expected = [&](bool fused, int reduce) {
    std::vector<float> w(256);
    for (int i = 0; i < 256; ++i) w[i] = lane(i, fused);
    if (reduce == 0) {
      for (int d = 128; d > 0; d /= 2) {
        for (int i = 0; i < d; ++i) w[i] += w[i + d];
      }
      return w[0];
    }
    return ((w[0] + w[1]) + (w[2] + w[3])) + ((w[4] + w[5]) + (w[6] + w[7]));
  };
  const char* reduces[] = {"shared-memory tree", "subgroupShuffleXor 1,2,4", "subgroupAdd"};
  for (bool explicit_fma : {true, false}) {
    for (int reduce = 0; reduce < 3; ++reduce) {
      const Kernel k = kernel(gpu, source(explicit_fma, reduce), {.bindings = 2});
      if (!k.error.empty()) {
        std::printf("%s: %s\n", reduces[reduce], first_lines(k.error, 2).c_str());
        continue;
      }
      std::vector<uint32_t> seen;
      for (int repeat = 0; repeat < 20; ++repeat) {
        const uint32_t groups = 1 + repeat * 3;
        WGPUBuffer out = buffer(gpu, groups * 4, kStorage);
        WGPUBindGroup group = make_group(gpu, k, {input, out});
        run(gpu, k, group, groups);
        const auto bytes = read(gpu, out, 0, groups * 4);
        for (uint32_t g = 0; g < groups; ++g) {
          uint32_t word;
          std::memcpy(&word, bytes.data() + g * 4, 4);
          if (std::find(seen.begin(), seen.end(), word) == seen.end()) seen.push_back(word);
        }
        wgpuBindGroupRelease(group);
        wgpuBufferRelease(out);
      }
      float value;
      std::memcpy(&value, seen.data(), 4);
      std::printf("%s, %-26s %zu different results (%.9g)",
                  explicit_fma ? "fma(x, y, s)" : "s + x * y   ", reduces[reduce], seen.size(),
                  value);
      if (reduce < 2) {
        std::printf("; equals the CPU's %s%s", value == expected(true, reduce) ? "fused " : "",
                    value == expected(false, reduce) ? "unfused" : "");
      }
      std::printf("\n");
    }
  }
  // Rounding and special functions against the CPU.
  const Kernel k = kernel(gpu,
                          "@group(0) @binding(0) var<storage, read_write> a: array<f32>;"
                          "@group(0) @binding(1) var<storage, read_write> o: array<f32>;"
                          "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: "
                          "vec3<u32>) { let x = a[id.x];"
                          "o[id.x] = x / 3.7; o[id.x + 4096u] = sqrt(abs(x)); o[id.x + 8192u] = "
                          "exp(x); o[id.x + 12288u] = inverseSqrt(abs(x) + 0.1);"
                          "o[id.x + 16384u] = sin(x * 1000.0); o[id.x + 20480u] = "
                          "bitcast<f32>(pack2x16float(vec2<f32>(x, 0.0))); o[id.x + 24576u] = x * "
                          "1e-39; o[id.x + 28672u] = round(x * 2.0); }",
                          {.bindings = 2});
  WGPUBuffer out = buffer(gpu, 4096 * 8 * 4, kStorage);
  run(gpu, k, make_group(gpu, k, {input, out}), 64);
  const auto bytes = read(gpu, out, 0, 4096 * 8 * 4);
  const char* names[] = {"x / 3.7",
                         "sqrt",
                         "exp",
                         "inverseSqrt",
                         "sin(1000 x)",
                         "pack2x16float",
                         "denormals (x * 1e-39)",
                         "round"};
  for (int f = 0; f < 8; ++f) {
    int64_t worst = 0;
    double absolute = 0;
    for (int i = 0; i < 4096; ++i) {
      const float x = a[i];
      float got;
      std::memcpy(&got, bytes.data() + (f * 4096 + i) * 4, 4);
      float want = 0;
      switch (f) {
        case 0:
          want = x / 3.7f;
          break;
        case 1:
          want = std::sqrt(std::fabs(x));
          break;
        case 2:
          want = static_cast<float>(std::exp(double(x)));
          break;
        case 3:
          want = static_cast<float>(1 / std::sqrt(double(std::fabs(x) + 0.1f)));
          break;
        case 4:
          want = static_cast<float>(std::sin(double(x * 1000.0f)));
          break;
        case 5: {
          const uint32_t word = to_half(x);
          std::memcpy(&want, &word, 4);
          break;
        }
        case 6:
          want = x * 1e-39f;
          break;
        case 7:
          want = std::nearbyint(x * 2.0f);
          break;
      }
      int32_t p, q;
      std::memcpy(&p, &got, 4);
      std::memcpy(&q, &want, 4);
      worst = std::max<int64_t>(worst, std::llabs(int64_t{p} - q));
      absolute = std::max(absolute, std::fabs(double(got) - want));
    }
    std::printf(
        "%-22s largest distance from the CPU's result: %lld units in the last place, %.3g\n",
        names[f], (long long)worst, absolute);
  }
}

namespace {

double cpu_us() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec * 1e6 + usage.ru_utime.tv_usec + usage.ru_stime.tv_sec * 1e6 +
         usage.ru_stime.tv_usec;
}

}  // namespace

void waiting(Gpu& gpu) {
  std::printf("\n## Waiting\n");
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  wgpuAdapterGetInfo(gpu.adapter, &info);
  const bool cpu = info.adapterType == WGPUAdapterType_CPU;
  const Kernel slow =
      kernel(gpu,
             "@group(0) @binding(0) var<storage, read_write> o: array<u32>;"
             "@compute @workgroup_size(1) fn main() { var x = o[0]; for (var i = 0u; i < " +
                 std::string(cpu ? "20000000" : "4000000") +
                 "u; i++) { x = x * 1664525u + 1013904223u; } o[0] = x; }");
  WGPUBindGroup group = make_group(gpu, slow, {buffer(gpu, 256, kStorage)});
  for (int mode = 0; mode < 3; ++mode) {
    finish(gpu);
    const double start = now_us(), cpu_start = cpu_us();
    WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
    WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(encoder, nullptr);
    wgpuComputePassEncoderSetPipeline(pass, slow.pipeline);
    wgpuComputePassEncoderSetBindGroup(pass, 0, group, 0, nullptr);
    wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
    wgpuComputePassEncoderEnd(pass);
    WGPUCommandBuffer commands = wgpuCommandEncoderFinish(encoder, nullptr);
    wgpuQueueSubmit(gpu.queue, 1, &commands);
    std::atomic<bool> done = false;
    WGPUQueueWorkDoneCallbackInfo callback = WGPU_QUEUE_WORK_DONE_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowSpontaneous;
    callback.userdata1 = &done;
    callback.callback = [](WGPUQueueWorkDoneStatus, WGPUStringView, void* user, void*) {
      *static_cast<std::atomic<bool>*>(user) = true;
    };
    wgpuQueueOnSubmittedWorkDone(gpu.queue, callback);
    int polls = 0;
    if (mode == 0) {
      for (; !done; ++polls) wgpuDevicePoll(gpu.device, false, nullptr);
    } else if (mode == 1) {
      polls = 1;
      wgpuDevicePoll(gpu.device, true, nullptr);
    } else {
      for (; !done; ++polls) {
        wgpuDevicePoll(gpu.device, false, nullptr);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
    const char* names[] = {"poll without wait, spinning", "poll with wait for all submissions",
                           "poll without wait, sleeping 100 us"};
    std::printf("%-36s %8.0f us, CPU time %8.0f us, %d polls, callback %s\n", names[mode],
                now_us() - start, cpu_us() - cpu_start, polls, done ? "came" : "did not come");
  }
  double best = 1e30, mean = 0;
  WGPUBuffer small = buffer(gpu, 256, kStorage);
  for (int i = 0; i < 50; ++i) {
    const double start = now_us();
    read(gpu, small, 0, 4);
    best = std::min(best, now_us() - start);
    mean += (now_us() - start) / 50;
  }
  std::printf("read of 4 bytes (new staging buffer, copy, map): best %.0f us, mean %.0f us\n", best,
              mean);
  const double start = now_us();
  for (int i = 0; i < 1000; ++i) wgpuDevicePoll(gpu.device, false, nullptr);
  std::printf("idle poll: %.2f us\n", (now_us() - start) / 1000);
  // Does a poll that waits on one thread stop another thread from recording and submitting?
  finish(gpu);
  run(gpu, slow, group, 1);
  std::atomic<bool> waiting{true};
  std::thread waiter([&] {
    wgpuDevicePoll(gpu.device, true, nullptr);
    waiting = false;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const double before = now_us();
  const Kernel one = kernel(gpu,
                            "@group(0) @binding(0) var<storage, read_write> o: array<u32>;"
                            "@compute @workgroup_size(1) fn main() { o[0] = 99u; }");
  run(gpu, one, make_group(gpu, one, {small}), 1);
  std::printf("while another thread waits in a poll (%s), compiling and submitting took %.0f us\n",
              waiting ? "still waiting after" : "finished before", now_us() - before);
  waiter.join();
  finish(gpu);
}

void errors(Gpu& gpu) {
  std::printf("\n## Errors\n");
  const auto show = [](const char* name, const std::string& message) {
    std::printf("%-34s %s\n", name, message.empty() ? "(none)" : first_lines(message, 6).c_str());
  };
  show("bad WGSL", kernel(gpu, "fn main( {").error);
  show("bad type in WGSL",
       kernel(gpu,
              "@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n@compute "
              "@workgroup_size(1)\nfn main() {\n  o[0] = 1.5;\n}")
           .error);
  show("binding not in layout",
       kernel(gpu,
              "@group(0) @binding(3) var<storage, read_write> o: array<u32>; @compute "
              "@workgroup_size(1) fn main() { o[0] = 1u; }")
           .error);
  show("workgroup too large", kernel(gpu, "@compute @workgroup_size(4096) fn main() { }").error);
  show("too much workgroup memory", kernel(gpu,
                                           "var<workgroup> w: array<u32, 100000>; @compute "
                                           "@workgroup_size(1) fn main() { w[0] = 1u; }")
                                        .error);
  show("huge buffer", scoped(gpu, [&] { buffer(gpu, uint64_t{1} << 45, kStorage); }));
  show("write past the end", scoped(gpu, [&] {
         static char bytes[64];
         wgpuQueueWriteBuffer(gpu.queue, buffer(gpu, 16, kStorage), 0, bytes, 64);
       }));
  show("copy past the end (finish)", scoped(gpu, [&] {
         WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
         wgpuCommandEncoderCopyBufferToBuffer(encoder, buffer(gpu, 16, kStorage), 0,
                                              buffer(gpu, 16, kStorage), 0, 64);
         wgpuCommandEncoderFinish(encoder, nullptr);
       }));
}

void threads(Gpu& gpu) {
  std::printf("\n## Threads\n");
  const auto source = [](int i) {
    std::string s =
        "@group(0) @binding(0) var<storage, read_write> o: array<f32>;"
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { var "
        "x = o[id.x];";
    for (int j = 0; j < 120; ++j)
      s += "x = fma(x, o[" + std::to_string(i * 131 + j) + "], sin(x + " + std::to_string(j) +
           ".0));";
    return s + "o[id.x] = x; }";
  };
  static int serial = 0;
  for (int count : {1, 2, 4, 8}) {
    const int pipelines = 32, base = serial;
    serial += pipelines;
    std::atomic<int> next{0};
    const double start = now_us();
    std::vector<std::thread> pool;
    for (int t = 0; t < count; ++t) {
      pool.emplace_back([&] {
        for (int i = next++; i < pipelines; i = next++) {
          WGPUShaderSourceWGSL wgsl = WGPU_SHADER_SOURCE_WGSL_INIT;
          const std::string text = source(base + i);
          wgsl.code = view(text);
          WGPUShaderModuleDescriptor module = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
          module.nextInChain = &wgsl.chain;
          WGPUComputePipelineDescriptor pipeline = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
          pipeline.compute.module = wgpuDeviceCreateShaderModuleTrusted(
              gpu.device, &module, WGPUShaderRuntimeChecks_None);
          pipeline.compute.entryPoint = view("main");
          wgpuDeviceCreateComputePipeline(gpu.device, &pipeline);
        }
      });
    }
    for (std::thread& t : pool) t.join();
    std::printf("%d pipelines on %d threads (of %u processors): %.0f ms\n", pipelines, count,
                std::thread::hardware_concurrency(), (now_us() - start) / 1e3);
  }
  const double start = now_us();
  kernel(gpu, source(0));
  std::printf("the first of them again: %.1f ms\n", (now_us() - start) / 1e3);
  // Errors on several threads at once: does each get its own?
  std::atomic<int> wrong{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < 4; ++t) {
    pool.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const Kernel k =
            kernel(gpu, t % 2 ? "nonsense"
                              : "@group(0) @binding(0) var<storage, read_write> o: array<u32>; "
                                "@compute @workgroup_size(1) fn main() { o[0] = " +
                                    std::to_string(t * 1000 + i) + "u; }");
        if (k.error.empty() == (t % 2 == 1)) ++wrong;
      }
    });
  }
  for (std::thread& t : pool) t.join();
  std::printf("errors on 4 threads: %d of 400 had another thread's result\n", wrong.load());
  // Is the uncaptured-error callback called on the failing thread, inside the call?
  const int before = gpu.uncaptured_count;
  buffer(gpu, uint64_t{1} << 45, kStorage);
  std::printf("uncaptured-error callback inside the failing call: %s\n",
              gpu.uncaptured_count > before ? "yes" : "NO");
}

}  // namespace probe
