// The WebGPU backend.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "gpu/device.h"

namespace wisp::backend {

struct GpuBackendOptions {
  gpu::DeviceOptions device;
  uint64_t memory_budget = 0;  // bytes for weights and KV; 0: what the device gives
};

// Throws Error naming the adapters there are when none fits.
std::unique_ptr<Backend> make_gpu_backend(const GpuBackendOptions& options = {});

}  // namespace wisp::backend
