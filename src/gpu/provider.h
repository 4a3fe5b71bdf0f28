// The provider's part: what plain webgpu.h leaves open or what the library does in its own way.
// Everything here is private to src/gpu. docs/webgpu.md has the reasons.
#pragma once

#include <webgpu/webgpu.h>

#include <string>
#include <string_view>
#include <vector>

#include "gpu/capabilities.h"
#include "gpu/handle.h"

namespace wisp::gpu {

inline WGPUStringView view(std::string_view text) { return {text.data(), text.size()}; }
inline std::string text(WGPUStringView v) {
  if (!v.data) return {};
  return v.length == WGPU_STRLEN ? std::string(v.data) : std::string(v.data, v.length);
}

// Catches errors that WebGPU calls of this thread report while it lives. Nested scopes: the inner
// one takes them. It uses no error scopes of the library (some share one stack among all threads):
// the uncaptured-error callback runs inside the failing call, on the calling thread.
class ErrorScope {
 public:
  ErrorScope();
  ~ErrorScope();
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;

  bool failed() const { return !message_.empty(); }
  // The library's first message as one line, "" when there was none.
  const std::string& message() const { return message_; }

  // For the device's callback: hands the message to this thread's innermost scope; false: none.
  static bool deliver(const std::string& message);

 private:
  std::string message_;
  ErrorScope* outer_;
};

namespace provider {

// One WebGPU instance per process, made on first use; never released. Null when none can be made.
WGPUInstance instance();
std::vector<AdapterHandle> adapters();
// Optional features of the standard and of the provider that wisp uses.
bool has_subgroups(WGPUAdapter adapter);
bool has_immediates(WGPUAdapter adapter);
// The ids to ask for, of those that the adapter has. Cooperative matrices come last: libraries may
// list them and yet refuse them.
std::vector<WGPUFeatureName> wanted_features(WGPUAdapter adapter);
bool is_matrix_feature(WGPUFeatureName feature);
// The cooperative-matrix shapes that a device with the matrix feature names; empty without it.
std::vector<MatrixConfig> matrices(WGPUAdapter adapter, WGPUDevice device);
bool subgroups_need_enable();
bool has_unchecked_shaders();
WGPUShaderModule make_module(WGPUDevice device, const WGPUShaderModuleDescriptor& descriptor,
                             bool checked);
// Runs due callbacks; returns at once. Must not be called on a lost device.
void poll(WGPUDevice device);
// Nanoseconds of one tick of a resolved timestamp.
double timestamp_period(WGPUQueue queue);

}  // namespace provider
}  // namespace wisp::gpu
