// Ops that become one kernel on the GPU.
#pragma once

#include "plan/plan.h"

namespace wisp::backend::webgpu {

// The same plan with each Quantize that is the only reader of a norm, a GLU or decode attention
// drawn into that op, whose `out` is then the q8 value. The results have the same bits.
plan::Plan fuse(const plan::Plan& plan, const plan::Resources& resources);

}  // namespace wisp::backend::webgpu
