// Spreads the values of a plan over few buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace wisp::plan {

// A buffer holds one value at a time, from its op to its last reader, so an op's output never lies
// in a buffer that the op reads (WebGPU forbids that even for disjoint ranges).
struct MemoryPlan {
  std::vector<uint64_t> buffer_bytes;
  std::vector<uint32_t> buffer_of_value;  // by value index
};

// `kept` values have a buffer of their own from their op on, so that they may be read after a step
// (tests, debugging).
MemoryPlan plan_memory(const Plan& plan, std::span<const ValueId> kept = {});

}  // namespace wisp::plan
