// Weights in device memory: streamed there once, block types as stored but for the planes of
// layout.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "gpu/buffer.h"
#include "gpu/device.h"
#include "plan/plan.h"

namespace wisp::backend::webgpu {

// Rows [first_row, first_row + rows) of a weight: as many as one binding holds.
struct WeightPart {
  uint32_t first_row = 0;
  uint32_t rows = 0;
  gpu::Buffer data;
  gpu::Buffer side;  // plane 1; empty: the type has none
};

using DeviceWeight = std::vector<WeightPart>;

// How many bytes both planes of all weights take.
uint64_t device_bytes(const std::vector<plan::Weight>& weights);

// Copies all weights to the device through a staging area of a few MiB. Throws Error naming the
// weight when its bytes are missing or the device refuses it, with what is needed in all.
std::vector<DeviceWeight> upload_weights(gpu::Device& device, const LoadOptions& options);

}  // namespace wisp::backend::webgpu
