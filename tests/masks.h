// Adapters that lack optional features, made from the one there is.
#pragma once

#include "gpu/capabilities.h"

namespace wisp {

struct Mask {
  const char* name;
  void (*apply)(gpu::Capabilities& c);
};

inline constexpr Mask kNoFeatures = {"nothing", [](gpu::Capabilities& c) {
                                       c.f16 = c.subgroups = c.packed_dot = c.immediates = false;
                                       c.matrices.clear();
                                     }};

// One feature less each. Matrices need f16 and subgroups, but must not follow from them.
inline constexpr Mask kOneFeatureLess[] = {
    {"no_subgroups", [](gpu::Capabilities& c) { c.subgroups = false; }},
    {"no_f16", [](gpu::Capabilities& c) { c.f16 = false; }},
    {"no_packed_dot", [](gpu::Capabilities& c) { c.packed_dot = false; }},
    {"no_matrices", [](gpu::Capabilities& c) { c.matrices.clear(); }},
};

}  // namespace wisp
