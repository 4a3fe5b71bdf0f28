// Capabilities that no query tells: found by running small kernels on a new device.
#pragma once

#include "gpu/capabilities.h"

namespace wisp::gpu {

class Device;

// Fills packed_dot, the subgroup sizes and the cooperative matrices of `capabilities`, which are
// those of `device`. Features that give wrong results are switched off.
void measure_capabilities(Device& device, Capabilities& capabilities);

}  // namespace wisp::gpu
