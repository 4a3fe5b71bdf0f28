// What the adapter and the shading language offer.
#include <cmath>
#include <map>

#include "probe.h"

namespace probe {

void facts(Gpu& gpu) {
  std::printf("## Adapters (library version %x)\n", wgpuGetVersion());
  for (WGPUAdapter adapter : adapters(gpu.instance)) {
    WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
    wgpuAdapterGetInfo(adapter, &info);
    std::printf(
        "'%s' vendor '%s' architecture '%s' driver '%s' backend %d type %d subgroups %u..%u\n",
        text(info.device).c_str(), text(info.vendor).c_str(), text(info.architecture).c_str(),
        text(info.description).c_str(), info.backendType, info.adapterType, info.subgroupMinSize,
        info.subgroupMaxSize);
  }
  std::printf("\n## Features of the chosen one (raw ids)\n");
  static const std::map<int, const char*> names = {
      {WGPUFeatureName_ShaderF16, "f16"},
      {WGPUFeatureName_Subgroups, "subgroups"},
      {WGPUFeatureName_TimestampQuery, "timestamps"},
      {WGPUNativeFeature_Immediates, "immediates"},
      {WGPUNativeFeature_Subgroup, "native-subgroup"},
      {WGPUNativeFeature_SubgroupBarrier, "subgroup-barrier"},
      {WGPUNativeFeature_TimestampQueryInsideEncoders, "timestamps-in-encoders"},
      {WGPUNativeFeature_TimestampQueryInsidePasses, "timestamps-in-passes"},
      {WGPUNativeFeature_ShaderInt64, "i64"},
      {WGPUNativeFeature_ShaderFloat32Atomic, "f32-atomics"},
      {WGPUNativeFeature_PipelineCache, "pipeline-cache"},
      {WGPUNativeFeature_MappablePrimaryBuffers, "mappable-primary-buffers"},
      {WGPUNativeFeature_CooperativeMatrix, "cooperative-matrix"}};
  WGPUSupportedFeatures features{};
  wgpuAdapterGetFeatures(gpu.adapter, &features);
  for (size_t i = 0; i < features.featureCount; ++i) {
    const auto found = names.find(features.features[i]);
    std::printf("%x%s%s ", features.features[i], found == names.end() ? "" : "=",
                found == names.end() ? "" : found->second);
  }
  const WGPULimits& l = gpu.limits;
  std::printf(
      "\n\n## Limits\nbuffer %llu, storage binding %llu, uniform binding %llu, storage buffers "
      "a stage %u, bindings a group %u, groups %u, dynamic storage %u, dynamic uniform %u\n"
      "workgroup memory %u, invocations %u (%u x %u x %u), workgroups %u, immediates %u, "
      "storage alignment %u, uniform alignment %u\n",
      (unsigned long long)l.maxBufferSize, (unsigned long long)l.maxStorageBufferBindingSize,
      (unsigned long long)l.maxUniformBufferBindingSize, l.maxStorageBuffersPerShaderStage,
      l.maxBindingsPerBindGroup, l.maxBindGroups, l.maxDynamicStorageBuffersPerPipelineLayout,
      l.maxDynamicUniformBuffersPerPipelineLayout, l.maxComputeWorkgroupStorageSize,
      l.maxComputeInvocationsPerWorkgroup, l.maxComputeWorkgroupSizeX, l.maxComputeWorkgroupSizeY,
      l.maxComputeWorkgroupSizeZ, l.maxComputeWorkgroupsPerDimension, l.maxImmediateSize,
      l.minStorageBufferOffsetAlignment, l.minUniformBufferOffsetAlignment);

  std::printf("\n## Subgroup sizes by workgroup size\n");
  Kernel size_kernel;
  for (int size : {16, 32, 64, 128, 256}) {
    const std::string source =
        "@group(0) @binding(0) var<storage, read_write> o: array<atomic<u32>, 4>;"
        "@compute @workgroup_size(" +
        std::to_string(size) +
        ") fn main(@builtin(subgroup_size) s: u32, @builtin(num_subgroups) n: u32) {"
        "atomicMax(&o[0], s); atomicMax(&o[1], 1000u - s); atomicMax(&o[2], n); }";
    size_kernel = kernel(gpu, source);
    if (!size_kernel.error.empty()) {
      std::printf("%d: %s\n", size, first_lines(size_kernel.error, 3).c_str());
      continue;
    }
    WGPUBuffer out = buffer(gpu, 16, kStorage);
    run(gpu, size_kernel, make_group(gpu, size_kernel, {out}), 4);
    const auto bytes = read(gpu, out, 0, 16);
    uint32_t words[4];
    std::memcpy(words, bytes.data(), 16);
    std::printf("workgroup %d: size %u to %u, %u subgroups\n", size, 1000 - words[1], words[0],
                words[2]);
  }
}

void language(Gpu& gpu) {
  std::printf("\n## What WGSL is accepted\n");
  const std::string o = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;";
  const std::string body = "@compute @workgroup_size(32) fn main() ";
  const std::pair<const char*, std::string> cases[] = {
      {"enable f16", "enable f16;" + o + body + "{ o[0] = u32(f16(o[1]) * 2.0h); }"},
      {"f16 in storage",
       "enable f16; @group(0) @binding(0) var<storage, read_write> o: array<vec4<f16>>;" + body +
           "{ o[0] = o[1] * 2.0h; }"},
      {"enable subgroups", "enable subgroups;" + o + body + "{ o[0] = subgroupAdd(o[1]); }"},
      {"subgroups, no enable", o + body + "{ o[0] = subgroupAdd(o[1]); }"},
      {"subgroupShuffleXor", o + body + "{ o[0] = subgroupShuffleXor(o[1], 1u); }"},
      {"subgroupShuffleDown", o + body + "{ o[0] = subgroupShuffleDown(o[1], 1u); }"},
      {"subgroupBroadcast", o + body + "{ o[0] = subgroupBroadcast(o[1], 1u); }"},
      {"subgroupBroadcastFirst", o + body + "{ o[0] = subgroupBroadcastFirst(o[1]); }"},
      {"subgroupBallot", o + body + "{ o[0] = subgroupBallot(o[1] > 0u).x; }"},
      {"subgroupExclusiveAdd", o + body + "{ o[0] = subgroupExclusiveAdd(o[1]); }"},
      {"subgroupMax", o + body + "{ o[0] = subgroupMax(o[1]); }"},
      {"quadSwapX", o + body + "{ o[0] = quadSwapX(o[1]); }"},
      {"subgroupBarrier", o + body + "{ subgroupBarrier(); o[0] = 1u; }"},
      {"subgroup_id built-in",
       o + "@compute @workgroup_size(32) fn main(@builtin(subgroup_id) s: u32) { o[s] = s; }"},
      {"shuffle of vec4<f32>",
       "@group(0) @binding(0) var<storage, read_write> o: array<vec4<f32>>;" + body +
           "{ o[0] = subgroupShuffleXor(o[1], 1u); }"},
      {"dot4I8Packed", o + body + "{ o[0] = u32(dot4I8Packed(o[1], o[2])); }"},
      {"requires packed dot", "requires packed_4x8_integer_dot_product;" + o + body +
                                  "{ o[0] = u32(dot4I8Packed(o[1], o[2])); }"},
      {"dot4U8Packed", o + body + "{ o[0] = dot4U8Packed(o[1], o[2]); }"},
      {"unpack4xI8, pack4xI8Clamp", o + body + "{ o[0] = pack4xI8Clamp(unpack4xI8(o[1]) * 2); }"},
      {"unpack2x16float", o + body + "{ o[0] = pack2x16float(unpack2x16float(o[1]) * 2.0); }"},
      {"var<immediate>", "struct P { a: u32 } var<immediate> p: P;" + o + body + "{ o[0] = p.a; }"},
      {"enable immediate", "enable immediate;" + o + body + "{ o[0] = 1u; }"},
      {"override workgroup size",
       "override n: u32 = 32;" + o + "@compute @workgroup_size(n) fn main() { o[0] = n; }"},
      {"override in array size", "override n: u32 = 32; var<workgroup> w: array<u32, n>;" + o +
                                     body + "{ w[0] = 1u; o[0] = w[0]; }"},
      {"const array in function", "const n = 8; " + o + body +
                                      "{ var a: array<u32, n>; for (var i = 0u; i < n; i++) { a[i] "
                                      "= o[i]; } o[0] = a[o[9]]; }"},
      {"alias, const_assert",
       "alias T = u32; const_assert 2 > 1;" + o + body + "{ var x: T = o[1]; o[0] = x; }"},
      {"pointer to storage passed",
       "fn f(p: ptr<storage, array<u32>, read_write>) -> u32 { return (*p)[1]; }" + o + body +
           "{ o[0] = f(&o); }"},
      {"pointer to workgroup passed",
       "var<workgroup> w: array<u32, 4>; fn f(p: ptr<workgroup, array<u32, 4>>) -> u32 { return "
       "(*p)[1]; }" +
           o + body + "{ w[1] = 2u; o[0] = f(&w); }"},
      {"workgroupUniformLoad",
       "var<workgroup> w: u32;" + o + body + "{ w = 2u; o[0] = workgroupUniformLoad(&w); }"},
      {"i64", o + body + "{ o[0] = u32(i64(o[1]) * 5li); }"},
      {"mat2x2<f16> fma f16",
       "enable f16; @group(0) @binding(0) var<storage, read_write> o: array<f16>;" + body +
           "{ o[0] = fma(o[1], o[2], o[3]); }"},
      {"barrier in divergent flow",
       o + "@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) { if (i "
           "< 16u) { workgroupBarrier(); } o[i] = i; }"},
      {"shuffle in divergent flow",
       o + "@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) { if (i "
           "< 16u) { o[i] = subgroupShuffleXor(i, 1u); } }"},
  };
  for (const auto& [name, source] : cases) {
    const Kernel result = kernel(gpu, source, {.immediate_size = 4u * gpu.has_immediates});
    std::printf("%-28s %s\n", name,
                result.error.empty() ? "yes" : ("NO: " + first_lines(result.error, 2)).c_str());
  }
}

namespace {

float float_of(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const float fraction = exponent ? 1 + (h & 0x3ff) / 1024.f : (h & 0x3ff) / 1024.f;
  return std::ldexp(fraction, exponent ? exponent - 15 : -14) * (h & 0x8000 ? -1 : 1);
}

// One tile product of small integers, exact in every type: which layout loads and stores have.
void matrix_case(Gpu& gpu, int size, bool half_inputs, bool half_sum, bool from_workgroup) {
  const std::string n = std::to_string(size), n2 = std::to_string(size * size);
  const std::string in = half_inputs ? "f16" : "f32", sum = half_sum ? "f16" : "f32";
  const std::string type = "coop_mat" + n + "x" + n;
  std::string source = gpu.has_f16 ? "enable f16;" : "";
  source +=
      "enable wgpu_cooperative_matrix;"
      "@group(0) @binding(0) var<storage, read_write> a: array<" +
      in +
      ">;"
      "@group(0) @binding(1) var<storage, read_write> b: array<" +
      in +
      ">;"
      "@group(0) @binding(2) var<storage, read_write> c: array<" +
      sum +
      ">;"
      "var<workgroup> wa: array<" +
      in + ", " + n2 +
      ">;"
      "@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {";
  if (from_workgroup) {
    source += "for (var j = i; j < " + n2 +
              "u; j += 32u) { wa[j] = a[j]; } workgroupBarrier();"
              "let ma = coopLoad<" +
              type + "<" + in + ", A>>(&wa[0], " + n + "u);";
  } else {
    source += "let ma = coopLoad<" + type + "<" + in + ", A>>(&a[0], " + n + "u);";
  }
  source += "let mb = coopLoad<" + type + "<" + in + ", B>>(&b[0], " + n +
            "u);"
            "var mc = coopLoad<" +
            type + "<" + sum + ", C>>(&c[0], " + n +
            "u);"
            "mc = coopMultiplyAdd(ma, mb, mc); coopStore(mc, &c[0], " +
            n + "u); }";
  const Kernel k = kernel(gpu, source, {.bindings = 3});
  std::printf("%dx%d %s inputs, %s sums, A from %s: ", size, size, in.c_str(), sum.c_str(),
              from_workgroup ? "workgroup memory" : "storage");
  if (!k.error.empty()) {
    std::printf("NO: %s\n", first_lines(k.error, 3).c_str());
    return;
  }
  const int count = size * size;
  std::vector<float> a(count), b(count), c(count);
  for (int i = 0; i < count; ++i) {
    a[i] = (i * 5 % 7) - 3;
    b[i] = (i * 3 % 5) - 2;
    c[i] = i % 4;
  }
  const auto upload = [&](const std::vector<float>& values, bool as_half) {
    WGPUBuffer out = buffer(gpu, count * (as_half ? 2 : 4), kStorage);
    std::vector<uint16_t> halves;
    for (float v : values) halves.push_back(to_half(v));
    wgpuQueueWriteBuffer(gpu.queue, out, 0, as_half ? (const void*)halves.data() : values.data(),
                         count * (as_half ? 2 : 4));
    return out;
  };
  WGPUBuffer result = upload(c, half_sum);
  run(gpu, k, make_group(gpu, k, {upload(a, half_inputs), upload(b, half_inputs), result}), 1);
  const auto bytes = read(gpu, result, 0, count * (half_sum ? 2 : 4));
  const auto at = [&](int i) {
    if (half_sum) {
      uint16_t h;
      std::memcpy(&h, bytes.data() + i * 2, 2);
      return float_of(h);
    }
    float f;
    std::memcpy(&f, bytes.data() + i * 4, 4);
    return f;
  };
  int row_major = 0, column_major = 0;
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      float row = c[i * size + j], column = c[i * size + j];
      for (int k2 = 0; k2 < size; ++k2) {
        row += a[i * size + k2] * b[k2 * size + j];
        column +=
            a[k2 * size + j] * b[i * size + k2];  // column-major tiles: the product transposed
      }
      row_major += at(i * size + j) == row;
      column_major += at(i * size + j) == column;
    }
  }
  std::printf("%s (%d/%d row-major, %d/%d column-major)%s%s\n",
              row_major == count      ? "right, row-major"
              : column_major == count ? "right, column-major"
                                      : "WRONG",
              row_major, count, column_major, count, gpu.uncaptured.empty() ? "" : "; ",
              first_lines(gpu.uncaptured, 2).c_str());
}

}  // namespace

void matrices(Gpu& gpu) {
  std::printf("\n## Cooperative matrices (feature %s)\n", gpu.has_matrix ? "there" : "not there");
  if (!gpu.has_matrix) return;
  for (int size : {16, 8}) {
    for (bool half_inputs : {true, false}) {
      for (bool half_sum : {false, true}) {
        if (!half_inputs && (half_sum || size == 16)) continue;
        matrix_case(gpu, size, half_inputs, half_sum, false);
        matrix_case(gpu, size, half_inputs, half_sum, true);
      }
    }
  }
}

void sizes(Gpu& gpu) {
  std::printf("\n## Largest buffers and bindings\n");
  const Kernel touch = kernel(gpu,
                              "@group(0) @binding(0) var<storage, read_write> data: array<u32>;"
                              "@compute @workgroup_size(1) fn main() { data[arrayLength(&data) - "
                              "1u] = 7u; data[0] = 5u; }");
  const uint64_t largest = gpu.limits.maxBufferSize & ~uint64_t{3};
  for (uint64_t size : {uint64_t{1} << 27, (uint64_t{1} << 31) - 4, largest, largest + 4}) {
    WGPUBuffer data = nullptr;
    std::string error = scoped(gpu, [&] { data = buffer(gpu, size, kStorage); });
    if (!error.empty()) {
      std::printf("buffer of %llu: %s\n", (unsigned long long)size, first_lines(error, 2).c_str());
      continue;
    }
    std::printf("buffer of %llu: made; ", (unsigned long long)size);
    const uint64_t bound = std::min<uint64_t>(size, gpu.limits.maxStorageBufferBindingSize & ~3ull);
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.buffer = data;
    entry.size = bound;
    entry.offset = (size - bound) / 256 * 256;
    WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
    descriptor.layout = touch.layout;
    descriptor.entries = &entry;
    descriptor.entryCount = 1;
    WGPUBindGroup group = nullptr;
    error = scoped(gpu, [&] { group = wgpuDeviceCreateBindGroup(gpu.device, &descriptor); });
    if (error.empty()) {
      run(gpu, touch, group, 1);
      const auto last = read(gpu, data, entry.offset + bound - 4, 4);
      std::printf("bound %llu at %llu, last word %u\n", (unsigned long long)bound,
                  (unsigned long long)entry.offset, last[0]);
      wgpuBindGroupRelease(group);
    } else {
      std::printf("binding: %s\n", first_lines(error, 2).c_str());
    }
    wgpuBufferRelease(data);
    finish(gpu);
  }
  // How much memory there is: buffers of 1 GiB until one fails (at most 160).
  std::vector<WGPUBuffer> held;
  std::string error;
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  wgpuAdapterGetInfo(gpu.adapter, &info);
  const int most = info.adapterType == WGPUAdapterType_CPU ? 4 : 160;
  while (error.empty() && static_cast<int>(held.size()) < most) {
    WGPUBuffer one = nullptr;
    error = scoped(gpu, [&] { one = buffer(gpu, uint64_t{1} << 30, kStorage); });
    if (error.empty()) held.push_back(one);
  }
  std::printf("buffers of 1 GiB: %zu made, then: %s\n", held.size(),
              error.empty() ? "(stopped asking)" : first_lines(error, 2).c_str());
  for (WGPUBuffer one : held) wgpuBufferRelease(one);
  finish(gpu);
}

}  // namespace probe
