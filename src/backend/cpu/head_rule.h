// What RopeKv does to the heads of one column.
#pragma once

#include <cstddef>
#include <optional>

#include "backend/cpu/norm_rule.h"
#include "plan/op.h"

namespace wisp::backend::cpu {

struct HeadRule {
  std::optional<NormRule> norm;
  bool norm_after_rope = false;
  const float* rope = nullptr;  // cos, sin of each pair at the column's position; nullptr: none
  size_t rotary_dim = 0;
  plan::RopeStyle style = plan::RopeStyle::half;
  float scale = 1.0F;
  float clip = 0.0F;  // 0: none
};

}  // namespace wisp::backend::cpu
