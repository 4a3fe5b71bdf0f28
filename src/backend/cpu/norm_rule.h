// What a norm of plan/op.h does to a row.
#pragma once

#include <cstddef>

#include "plan/op.h"

namespace wisp::backend::cpu {

struct NormRule {
  plan::NormKind kind = plan::NormKind::rms;
  const float* weight = nullptr;  // nullptr: 1
  const float* bias = nullptr;    // nullptr: 0
  size_t group = 0;               // elements that are normalised together
  size_t weight_stride = 0;       // from a group's weights to the next one's; 0: all share them
  float eps = 0.0F;
  float weight_offset = 0.0F;
};

}  // namespace wisp::backend::cpu
