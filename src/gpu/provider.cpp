#include "gpu/provider.h"

#include <webgpu/wgpu.h>

#include <cstdlib>
#include <optional>

#ifdef WISP_WEBGPU_RS
#include <wisp_webgpu.h>
#endif

namespace wisp::gpu {
namespace {

thread_local ErrorScope* innermost = nullptr;

WGPUFeatureName native(WGPUNativeFeature feature) { return static_cast<WGPUFeatureName>(feature); }

}  // namespace

ErrorScope::ErrorScope() : outer_(innermost) { innermost = this; }
ErrorScope::~ErrorScope() { innermost = outer_; }

bool ErrorScope::deliver(const std::string& message) {
  if (!innermost) return false;
  if (innermost->message_.empty()) innermost->message_ = message.empty() ? "unknown" : message;
  return true;
}

namespace provider {

WGPUInstance instance() {
  static const WGPUInstance one = [] {
    // Mesa's device-select layer would print to stderr where there is no desktop session.
    ::setenv("NODEVICE_SELECT", "1", 0);
    wgpuSetLogLevel(WGPULogLevel_Off);
    WGPUInstanceExtras extras{};
    extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
    extras.backends = WGPUInstanceBackend_Primary;
    WGPUInstanceDescriptor descriptor = WGPU_INSTANCE_DESCRIPTOR_INIT;
    descriptor.nextInChain = &extras.chain;
    return wgpuCreateInstance(&descriptor);
  }();
  return one;
}

std::vector<AdapterHandle> adapters() {
  std::vector<AdapterHandle> list;
  if (!instance()) return list;
  std::vector<WGPUAdapter> raw(wgpuInstanceEnumerateAdapters(instance(), nullptr, nullptr));
  raw.resize(wgpuInstanceEnumerateAdapters(instance(), nullptr, raw.data()));
  for (WGPUAdapter adapter : raw) list.emplace_back(adapter);
  return list;
}

bool has_subgroups(WGPUAdapter adapter) {
  return wgpuAdapterHasFeature(adapter, native(WGPUNativeFeature_Subgroup));
}
bool has_immediates(WGPUAdapter adapter) {
  return wgpuAdapterHasFeature(adapter, native(WGPUNativeFeature_Immediates));
}
bool is_matrix_feature(WGPUFeatureName feature) {
  return feature == native(WGPUNativeFeature_CooperativeMatrix);
}

#ifdef WISP_WEBGPU_RS
std::vector<MatrixConfig> matrices(WGPUAdapter adapter, WGPUDevice device) {
  std::vector<MatrixConfig> configs;
  if (!wgpuDeviceHasFeature(device, native(WGPUNativeFeature_CooperativeMatrix))) return configs;
  std::vector<WispMatrixConfig> raw(wispAdapterGetMatrixConfigs(adapter, nullptr, 0));
  wispAdapterGetMatrixConfigs(adapter, raw.data(), raw.size());
  const auto type = [](uint32_t scalar) -> std::optional<MatrixType> {
    if (scalar == WispScalar_F16) return MatrixType::f16;
    if (scalar == WispScalar_F32) return MatrixType::f32;
    return std::nullopt;
  };
  for (const WispMatrixConfig& one : raw) {
    const std::optional<MatrixType> input = type(one.input);
    const std::optional<MatrixType> accumulator = type(one.accumulator);
    if (input && accumulator) configs.push_back({one.m, one.n, one.k, *input, *accumulator});
  }
  return configs;
}
#else
std::vector<MatrixConfig> matrices(WGPUAdapter, WGPUDevice) { return {}; }  // none is told
#endif

std::vector<WGPUFeatureName> wanted_features(WGPUAdapter adapter) {
  std::vector<WGPUFeatureName> wanted;
  for (WGPUFeatureName feature :
       {WGPUFeatureName_ShaderF16, WGPUFeatureName_TimestampQuery,
        native(WGPUNativeFeature_Immediates), native(WGPUNativeFeature_Subgroup),
        native(WGPUNativeFeature_SubgroupBarrier), native(WGPUNativeFeature_CooperativeMatrix)}) {
    if (wgpuAdapterHasFeature(adapter, feature)) wanted.push_back(feature);
  }
  return wanted;
}

bool subgroups_need_enable() { return false; }
bool has_unchecked_shaders() { return true; }

WGPUShaderModule make_module(WGPUDevice device, const WGPUShaderModuleDescriptor& descriptor,
                             bool checked) {
  if (checked) return wgpuDeviceCreateShaderModule(device, &descriptor);
  return wgpuDeviceCreateShaderModuleTrusted(device, &descriptor, WGPUShaderRuntimeChecks_None);
}

void poll(WGPUDevice device) { wgpuDevicePoll(device, false, nullptr); }

double timestamp_period(WGPUQueue queue) { return wgpuQueueGetTimestampPeriod(queue); }

}  // namespace provider
}  // namespace wisp::gpu
