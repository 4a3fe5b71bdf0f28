// The WebGPU backend.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "gpu/device.h"
#include "gpu/kernel.h"

namespace wisp::backend {

// A device and what was compiled for it. Backends of one thread may share it, one model each.
struct GpuContext {
  explicit GpuContext(const gpu::DeviceOptions& options);

  std::unique_ptr<gpu::Device> device;
  gpu::PipelineCache cache;
};

struct GpuBackendOptions {
  std::shared_ptr<GpuContext> context;  // null: one of its own, made from `device`
  gpu::DeviceOptions device;
  uint64_t memory_budget = 0;  // bytes for weights and KV; 0: what the device gives
};

// Throws Error naming the adapters there are when none fits.
std::unique_ptr<Backend> make_gpu_backend(const GpuBackendOptions& options = {});

}  // namespace wisp::backend
