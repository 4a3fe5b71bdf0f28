// What RopeKv does to one head of one column.
#pragma once

#include <cstddef>

#include "plan/op.h"

namespace wisp::backend::cpu {

struct HeadRule {
  const float* norm = nullptr;  // [head_dim]; nullptr: not normalised
  float norm_eps = 0.0F;
  float norm_offset = 0.0F;
  const float* rope = nullptr;  // cos, sin of each pair at the column's position; nullptr: none
  size_t rotary_dim = 0;
  plan::RopeStyle style = plan::RopeStyle::half;
  float scale = 1.0F;
};

}  // namespace wisp::backend::cpu
