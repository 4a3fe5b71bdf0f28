// Ops that become one kernel on the GPU.
#pragma once

#include <span>

#include "backend/gpu/weights.h"
#include "gpu/capabilities.h"
#include "plan/plan.h"

namespace wisp::backend::webgpu {

// The same plan with fewer ops; `kept` values are still made.
// - A Quantize that is the only reader of a norm, an activation, a GLU, a gate or decode attention
//   is drawn into that op, whose `out` is then the q8 value. The results have the same bits.
// - A Quantize of a norm that others read too is drawn into the norm, which then has two results.
// - A plain GLU (one group, no limit), and a root mean square norm that only Linears read, that
//   write q8 values are drawn into the Linear with q8 inputs before them, the norm also into a
//   Combine. The norm's RMS factor
//   then multiplies the sums of the Linears that read it (plan::NormOut), so results differ by
//   rounding.
// - A RopeKv without clip and query scale, and with no norms or those of single heads up to 128, is
//   drawn into the Linear with q8 inputs before it, which rotates its results and writes them where
//   they belong: the same bits without norms.
// - What norms, activations, GLUs, gates and attention of the prefill class write only for
//   cooperative matrices is written as f16, which is what those make of it: the same bits.
plan::Plan fuse(const plan::Plan& plan, const plan::Resources& resources,
                const gpu::Capabilities& capabilities, std::span<const DeviceWeight> weights,
                std::span<const plan::ValueId> kept);

}  // namespace wisp::backend::webgpu
