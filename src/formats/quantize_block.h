// What the encoders of quantize_*.cpp share: one block of values in, its bytes out.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "formats/half.h"
#include "formats/quantize_fit.h"

namespace wisp::formats {

// Writes the block of one block's values, which are finite. `importance` holds a weight of each
// value's squared error, finite and not negative, or is nullptr for equal weights.
using EncodeBlockFn = void (*)(const float* values, const float* importance, std::byte* block);

void encode_block_q8_0(const float* values, const float* importance, std::byte* block);
void encode_block_q4_0(const float* values, const float* importance, std::byte* block);
void encode_block_q4_1(const float* values, const float* importance, std::byte* block);
void encode_block_q5_0(const float* values, const float* importance, std::byte* block);
void encode_block_q5_1(const float* values, const float* importance, std::byte* block);
void encode_block_iq4_nl(const float* values, const float* importance, std::byte* block);
void encode_block_q4_k(const float* values, const float* importance, std::byte* block);
void encode_block_q5_k(const float* values, const float* importance, std::byte* block);
void encode_block_q6_k(const float* values, const float* importance, std::byte* block);
void encode_block_iq4_xs(const float* values, const float* importance, std::byte* block);

// A block's values divided by 2^exponent, which brings the largest magnitude into [0.5, 1): what is
// squared and inverted neither overflows nor vanishes.
//
// A value weighs sqrt(mean square / 2 + its square), since large weights matter more to what a
// model says than their share of the squared error tells, times its importance. Importances near
// zero are raised, so that every group has a best scale; all of zero count as none.
template <size_t n>
struct Block {
  WeightedValues<n> values;
  int exponent = 0;

  Block(const float* from, const float* importance) {
    float largest = 0.0f;
    for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(from[i]));
    std::frexp(largest, &exponent);
    const double factor = std::ldexp(1.0, -exponent);
    double squares = 0.0, importances = 0.0;
    for (size_t i = 0; i < n; ++i) {
      values.x[i] = static_cast<float>(static_cast<double>(from[i]) * factor);
      squares += static_cast<double>(values.x[i] * values.x[i]);
      if (importance != nullptr) importances += static_cast<double>(importance[i]);
    }
    const float half_mean_square = static_cast<float>(squares / (2.0 * n)) + kVanishing;
    for (size_t i = 0; i < n; ++i) {
      values.w[i] = std::sqrt(half_mean_square + values.x[i] * values.x[i]);
    }
    if (!(importances > 0.0)) return;
    constexpr double kLeast = 1e-5;  // of the mean importance
    const double inverse_mean = static_cast<double>(n) / importances;
    for (size_t i = 0; i < n; ++i) {
      const double share = static_cast<double>(importance[i]) * inverse_mean;
      values.w[i] *= static_cast<float>(std::max(share, kLeast));
    }
  }
};

// A scale or offset as it is stored, and what that is among the divided values.
struct StoredScale {
  uint16_t bits = 0;
  float value = 0.0f;
};

// To nearest; what f16 cannot hold becomes its largest value.
inline StoredScale store_scale(float scale, int exponent) {
  constexpr float kLargest = 65504.0f;
  const float wanted = std::clamp(std::ldexp(scale, exponent), -kLargest, kLargest);
  const uint16_t bits = f32_to_f16(wanted);
  return {bits, std::ldexp(f16_to_f32(bits), -exponent)};
}

// `n` numbers, each `step` after the one before.
template <size_t n>
constexpr std::array<float, n> steps(float first, float step) {
  std::array<float, n> values{};
  for (size_t i = 0; i < n; ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}

// Targets for search_scale: codes from -half to half - 1 with either end in use.
constexpr std::array<float, 32> symmetric_targets(float half) {
  std::array<float, 32> targets{};
  std::ranges::copy(steps<16>(-half - 1.0f, 0.125f), targets.begin());
  std::ranges::copy(steps<16>(half - 1.5f, 0.125f), targets.begin() + 16);
  return targets;
}

// Extras for search_affine.
inline constexpr auto kAffineExtras = steps<24>(-2.0f, 0.125f);

inline float inverse_or_zero(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

// Group `index` of a block.
template <size_t size, size_t n>
WeightedValues<size> group_of(const WeightedValues<n>& block, size_t index) {
  WeightedValues<size> group;
  std::copy_n(block.x.begin() + index * size, size, group.x.begin());
  std::copy_n(block.w.begin() + index * size, size, group.w.begin());
  return group;
}

}  // namespace wisp::formats
