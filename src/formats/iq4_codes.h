// The nearest of the sixteen values of IQ4_NL and IQ4_XS.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "formats/codec_grids.h"
#include "formats/quantize_fit.h"

namespace wisp::formats {

// Index of the nearest value, for every step of 1/4 from the lowest value up.
inline constexpr int kIq4Steps = 4;
inline constexpr auto kIq4Nearest = [] {
  std::array<uint8_t, static_cast<size_t>(kIq4Levels.back() - kIq4Levels.front()) * kIq4Steps + 1>
      table{};
  size_t index = 0;
  for (int step = 0; step < static_cast<int>(table.size()); ++step) {
    const auto twice_middle = [](size_t i) { return kIq4Levels[i] + kIq4Levels[i + 1]; };
    while (index + 1 < kIq4Levels.size() &&
           2 * step > (twice_middle(index) - 2 * kIq4Levels[0]) * kIq4Steps) {
      ++index;
    }
    table[static_cast<size_t>(step)] = static_cast<uint8_t>(index);
  }
  return table;
}();
inline constexpr auto kIq4Floats = [] {
  std::array<float, kIq4Nearest.size()> table{};
  for (size_t step = 0; step < table.size(); ++step) {
    table[step] = static_cast<float>(kIq4Levels[kIq4Nearest[step]]);
  }
  return table;
}();

// Codes for quantize_fit.h: the nearest value, as exactly as the table's steps tell.
class Iq4Codes {
 public:
  float nearest(float value) const { return kIq4Floats[step_of(value)]; }
  unsigned index(float value) const { return kIq4Nearest[step_of(value)]; }

 private:
  static size_t step_of(float value) {
    constexpr float kLow = kIq4Levels.front();
    constexpr float kHigh = kIq4Levels.back();
    const float above = std::min(std::max(value, kLow), kHigh) - kLow;
    return static_cast<size_t>(static_cast<int>(round_small(above * kIq4Steps)));
  }
};

// Targets for search_scale: either end in use.
inline constexpr auto kIq4Targets = [] {
  std::array<float, 32> targets{};
  for (size_t i = 0; i < 16; ++i) {
    targets[i] = -140.0f + 2.0f * static_cast<float>(i);
    targets[i + 16] = 98.0f + 2.0f * static_cast<float>(i);
  }
  return targets;
}();

}  // namespace wisp::formats
