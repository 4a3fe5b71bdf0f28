#include "probe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace probe {

uint16_t to_half(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  if (magnitude >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int scale = std::max(exponent, -13) - 11;  // of the last bit of the fraction
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
  // units is 1024..2048 for normal numbers, less for denormals; a carry moves the exponent up.
  return static_cast<uint16_t>(sign | (((scale + 24) << 10) + units));
}

WGPUInstance make_instance() {
  WGPUInstanceExtras extras{};
  extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
  extras.backends = WGPUInstanceBackend_Primary;
  WGPUInstanceDescriptor descriptor = WGPU_INSTANCE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &extras.chain;
  return wgpuCreateInstance(&descriptor);
}

std::vector<WGPUAdapter> adapters(WGPUInstance instance) {
  std::vector<WGPUAdapter> list(wgpuInstanceEnumerateAdapters(instance, nullptr, nullptr));
  wgpuInstanceEnumerateAdapters(instance, nullptr, list.data());
  return list;
}

Gpu* open(const std::string& part) {
  auto* gpu = new Gpu;
  gpu->instance = make_instance();
  for (WGPUAdapter adapter : adapters(gpu->instance)) {
    WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
    wgpuAdapterGetInfo(adapter, &info);
    if (!gpu->adapter && text(info.device).find(part) != std::string::npos) gpu->adapter = adapter;
  }
  if (!gpu->adapter) {
    std::printf("no adapter whose name holds '%s'\n", part.c_str());
    std::exit(1);
  }
  std::vector<WGPUFeatureName> features;
  for (int id : {int{WGPUFeatureName_ShaderF16}, int{WGPUFeatureName_Subgroups},
                 int{WGPUFeatureName_TimestampQuery}, int{WGPUNativeFeature_Immediates},
                 int{WGPUNativeFeature_Subgroup}, int{WGPUNativeFeature_SubgroupBarrier},
                 int{WGPUNativeFeature_TimestampQueryInsideEncoders},
                 int{WGPUNativeFeature_TimestampQueryInsidePasses},
                 int{WGPUNativeFeature_CooperativeMatrix}}) {
    const auto feature = static_cast<WGPUFeatureName>(id);
    if (wgpuAdapterHasFeature(gpu->adapter, feature)) features.push_back(feature);
    if (wgpuAdapterHasFeature(gpu->adapter, feature)) {
      gpu->has_f16 |= id == WGPUFeatureName_ShaderF16;
      gpu->has_immediates |= id == WGPUNativeFeature_Immediates;
      gpu->has_matrix |= id == WGPUNativeFeature_CooperativeMatrix;
    }
  }
  wgpuAdapterGetLimits(gpu->adapter, &gpu->limits);
  WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
  descriptor.requiredFeatures = features.data();
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredLimits = &gpu->limits;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = gpu;
  descriptor.uncapturedErrorCallbackInfo.callback = [](WGPUDevice const*, WGPUErrorType,
                                                       WGPUStringView message, void* user, void*) {
    if (caught().empty()) caught() = text(message);
    static std::mutex mutex;  // errors may come on several threads
    const std::scoped_lock lock(mutex);
    static_cast<Gpu*>(user)->uncaptured = text(message);
    static_cast<Gpu*>(user)->uncaptured_count++;
  };
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.userdata1 = gpu;
  descriptor.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason reason,
                                                  WGPUStringView message, void* user, void*) {
    static_cast<Gpu*>(user)->lost = "reason " + std::to_string(reason) + ": " + text(message);
  };
  WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.userdata1 = gpu;
  callback.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message,
                         void* user, void*) {
    static_cast<Gpu*>(user)->device = device;
    if (!device) std::printf("no device: %s\n", first_lines(text(message), 3).c_str());
  };
  wgpuAdapterRequestDevice(gpu->adapter, &descriptor, callback);
  if (!gpu->device && gpu->has_matrix) {
    std::printf("(again without cooperative matrices)\n");
    gpu->has_matrix = false;
    descriptor.requiredFeatureCount = features.size() - 1;  // they are the last
    wgpuAdapterRequestDevice(gpu->adapter, &descriptor, callback);
  }
  if (!gpu->device) std::exit(1);
  gpu->queue = wgpuDeviceGetQueue(gpu->device);
  return gpu;
}

WGPUBuffer buffer(Gpu& gpu, uint64_t size, WGPUBufferUsage usage) {
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.size = size;
  descriptor.usage = usage;
  return wgpuDeviceCreateBuffer(gpu.device, &descriptor);
}

std::string& caught() {
  thread_local std::string message;
  return message;
}

std::string first_lines(const std::string& message, int lines) {
  std::string out;
  size_t at = 0;
  while (at < message.size() && lines > 0) {
    const size_t end = std::min(message.find('\n', at), message.size());
    const std::string line = message.substr(at, end - at);
    if (line.find_first_not_of(" \t") != std::string::npos && line != "Caused by:" &&
        line != "Validation Error") {
      out += (out.empty() ? "" : " | ") + line.substr(line.find_first_not_of(" \t"));
      --lines;
    }
    at = end + 1;
  }
  return out;
}

Kernel kernel(Gpu& gpu, std::string_view wgsl, const KernelOptions& options) {
  Kernel out;
  out.error = scoped(gpu, [&] {
    WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
    source.code = view(wgsl);
    WGPUShaderModuleDescriptor module_descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
    module_descriptor.nextInChain = &source.chain;
    WGPUShaderModule module =
        options.checked ? wgpuDeviceCreateShaderModule(gpu.device, &module_descriptor)
                        : wgpuDeviceCreateShaderModuleTrusted(gpu.device, &module_descriptor,
                                                              WGPUShaderRuntimeChecks_None);
    std::vector<WGPUBindGroupLayoutEntry> entries(options.bindings + options.dynamic_uniform,
                                                  WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT);
    for (uint32_t i = 0; i < entries.size(); ++i) {
      entries[i].binding = i;
      entries[i].visibility = WGPUShaderStage_Compute;
      entries[i].buffer.type = WGPUBufferBindingType_Storage;
      if (i == options.bindings) {
        entries[i].buffer.type = WGPUBufferBindingType_Uniform;
        entries[i].buffer.hasDynamicOffset = true;
      }
    }
    WGPUBindGroupLayoutDescriptor layout = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
    layout.entries = entries.data();
    layout.entryCount = entries.size();
    out.layout = wgpuDeviceCreateBindGroupLayout(gpu.device, &layout);
    WGPUPipelineLayoutDescriptor pipeline_layout = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
    pipeline_layout.bindGroupLayouts = &out.layout;
    pipeline_layout.bindGroupLayoutCount = 1;
    pipeline_layout.immediateSize = options.immediate_size;
    WGPUComputePipelineDescriptor pipeline = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
    pipeline.layout = wgpuDeviceCreatePipelineLayout(gpu.device, &pipeline_layout);
    pipeline.compute.module = module;
    pipeline.compute.entryPoint = view("main");
    out.pipeline = wgpuDeviceCreateComputePipeline(gpu.device, &pipeline);
    wgpuPipelineLayoutRelease(pipeline.layout);
    wgpuShaderModuleRelease(module);
  });
  return out;
}

WGPUBindGroup make_group(Gpu& gpu, const Kernel& kernel, const std::vector<WGPUBuffer>& buffers) {
  std::vector<WGPUBindGroupEntry> entries(buffers.size(), WGPU_BIND_GROUP_ENTRY_INIT);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    entries[i].binding = i;
    entries[i].buffer = buffers[i];
    entries[i].size = WGPU_WHOLE_SIZE;
    if (wgpuBufferGetUsage(buffers[i]) & WGPUBufferUsage_Uniform) entries[i].size = 16;
  }
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.layout = kernel.layout;
  descriptor.entries = entries.data();
  descriptor.entryCount = entries.size();
  return wgpuDeviceCreateBindGroup(gpu.device, &descriptor);
}

void submit(Gpu& gpu, WGPUCommandEncoder encoder) {
  WGPUCommandBuffer commands = wgpuCommandEncoderFinish(encoder, nullptr);
  wgpuQueueSubmit(gpu.queue, 1, &commands);
  wgpuCommandBufferRelease(commands);
  wgpuCommandEncoderRelease(encoder);
}

void run(Gpu& gpu, const Kernel& kernel, WGPUBindGroup group, uint32_t groups) {
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(encoder, nullptr);
  wgpuComputePassEncoderSetPipeline(pass, kernel.pipeline);
  wgpuComputePassEncoderSetBindGroup(pass, 0, group, 0, nullptr);
  wgpuComputePassEncoderDispatchWorkgroups(pass, groups, 1, 1);
  wgpuComputePassEncoderEnd(pass);
  wgpuComputePassEncoderRelease(pass);
  submit(gpu, encoder);
}

bool finish(Gpu& gpu, double seconds) {
  bool done = false;
  WGPUQueueWorkDoneCallbackInfo info = WGPU_QUEUE_WORK_DONE_CALLBACK_INFO_INIT;
  info.mode = WGPUCallbackMode_AllowSpontaneous;
  info.userdata1 = &done;
  info.callback = [](WGPUQueueWorkDoneStatus, WGPUStringView, void* user, void*) {
    *static_cast<bool*>(user) = true;
  };
  wgpuQueueOnSubmittedWorkDone(gpu.queue, info);
  const double end = now_us() + seconds * 1e6;
  while (!done && now_us() < end) wgpuDevicePoll(gpu.device, false, nullptr);
  return done;
}

std::vector<uint8_t> read(Gpu& gpu, WGPUBuffer source, uint64_t offset, uint64_t size) {
  WGPUBuffer staging = buffer(gpu, size, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(gpu.device, nullptr);
  wgpuCommandEncoderCopyBufferToBuffer(encoder, source, offset, staging, 0, size);
  submit(gpu, encoder);
  int state = 0;
  WGPUBufferMapCallbackInfo info = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  info.mode = WGPUCallbackMode_AllowSpontaneous;
  info.userdata1 = &state;
  info.callback = [](WGPUMapAsyncStatus status, WGPUStringView, void* user, void*) {
    *static_cast<int*>(user) = status == WGPUMapAsyncStatus_Success ? 1 : 2;
  };
  wgpuBufferMapAsync(staging, WGPUMapMode_Read, 0, size, info);
  while (state == 0) wgpuDevicePoll(gpu.device, false, nullptr);
  std::vector<uint8_t> bytes(size);
  if (state == 1) std::memcpy(bytes.data(), wgpuBufferGetConstMappedRange(staging, 0, size), size);
  wgpuBufferRelease(staging);
  return bytes;
}

}  // namespace probe
