// Views of the weights where they lie in mapped files.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cpu/context.h"

namespace wisp::backend::cpu {

// Views of all weights. F32 weights whose address is not a multiple of 4 and vectors that come in
// parts are copied to `copies`; the rest is used in place. Throws Error naming a weight whose bytes
// do not fit its shape.
std::vector<WeightView> view_weights(const plan::Resources& resources,
                                     const std::vector<WeightParts>& weights,
                                     std::vector<Buffer>& copies);

}  // namespace wisp::backend::cpu
