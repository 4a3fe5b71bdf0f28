#include "backend/create.h"

#include "backend/cpu/backend.h"
#include "backend/gpu/backend.h"
#include "gpu/device.h"

namespace wisp::backend {
namespace {

bool has_real_gpu() {
  for (const gpu::AdapterInfo& adapter : gpu::list_adapters()) {
    if (adapter.kind != gpu::AdapterKind::cpu) return true;
  }
  return false;
}

}  // namespace

Factory make_factory(const CreateOptions& options) {
  const bool webgpu =
      options.choice == Choice::webgpu ||
      (options.choice == Choice::automatic && (!options.adapter.empty() || has_real_gpu()));
  if (!webgpu) return [threads = options.threads] { return make_cpu_backend(threads); };
  const auto context = std::make_shared<GpuContext>(
      gpu::DeviceOptions{.adapter = options.adapter, .mask = options.mask});
  return [context] { return make_gpu_backend({.context = context}); };
}

std::unique_ptr<Backend> create(const CreateOptions& options) { return make_factory(options)(); }

}  // namespace wisp::backend
