// What the encoders of super-blocks share. Groups are fitted one by one, then the f16 scales of the
// super-block to the groups' scales, then both again in turns against the values themselves.
#pragma once

#include <array>
#include <cstddef>

#include "formats/quantize_block.h"

namespace wisp::formats {

inline constexpr size_t kSuperBlock = 256;
inline constexpr int kRounds = 3;
// A round that takes less than this part of a super-block's error is the last.
inline constexpr float kWorthwhile = 1e-3f;

template <size_t size>
using Groups = std::array<WeightedValues<size>, kSuperBlock / size>;

template <size_t size>
Groups<size> split(const WeightedValues<kSuperBlock>& block) {
  Groups<size> groups;
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = group_of<size>(block, i);
  return groups;
}

// Repeats `next` from a fitted block while the error falls by enough.
template <typename Fitted, typename Next>
Fitted improve(Fitted best, const Next& next) {
  for (int round = 0; round < kRounds; ++round) {
    const Fitted other = next(best);
    if (!(other.error < best.error)) break;
    const bool last = best.error - other.error < kWorthwhile * best.error;
    best = other;
    if (last) break;
  }
  return best;
}

}  // namespace wisp::formats
