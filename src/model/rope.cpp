#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace wisp::model {
namespace {

// Llama 3.1: wavelengths above original / low_freq_factor are stretched by the factor, those below
// original / high_freq_factor stay, those between are blended.
double llama3_frequency(const RopeConfig& rope, double freq) {
  const double original = rope.original_context;
  const double wavelength = 2.0 * std::numbers::pi / freq;
  if (wavelength > original / rope.low_freq_factor) return freq / rope.factor;
  if (wavelength < original / rope.high_freq_factor) return freq;
  const double smooth = (original / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - smooth) * freq / rope.factor + smooth * freq;
}

// The pair index whose frequency makes `rotations` turns over the original context.
double correction_dim(const RopeConfig& rope, double rotations) {
  return rope.rotary_dim * std::log(rope.original_context / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

// Fast pairs keep their frequency, slow ones are divided by the factor, with a linear ramp between.
double yarn_frequency(const RopeConfig& rope, uint32_t pair, double freq) {
  double low = correction_dim(rope, rope.beta_fast);
  double high = correction_dim(rope, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope.rotary_dim - 1.0);
  if (low == high) high += 0.001;
  const double ramp = std::clamp((pair - low) / (high - low), 0.0, 1.0);
  return freq / rope.factor * ramp + freq * (1.0 - ramp);
}

// Longrope (Ding et al. 2024): the amplitude that goes with a context stretched by `factor`.
double longrope_amplitude(const RopeConfig& rope) {
  if (rope.factor <= 1.0) return 1.0;
  return std::sqrt(1.0 + std::log(rope.factor) / std::log(rope.original_context));
}

double attention_factor(const RopeConfig& rope) {
  const bool scaled = rope.scaling == RopeScaling::yarn || rope.scaling == RopeScaling::longrope;
  if (!scaled) return 1.0;
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.scaling == RopeScaling::longrope) return longrope_amplitude(rope);
  if (rope.mscale.value_or(0.0) != 0.0 && rope.mscale_all_dim.value_or(0.0) != 0.0) {
    return yarn_mscale(rope.factor, *rope.mscale) / yarn_mscale(rope.factor, *rope.mscale_all_dim);
  }
  return yarn_mscale(rope.factor, 1.0);
}

double frequency(const RopeConfig& rope, uint32_t pair) {
  const double freq = 1.0 / std::pow(rope.theta, 2.0 * pair / rope.rotary_dim);
  switch (rope.scaling) {
    case RopeScaling::none:
      return freq;
    case RopeScaling::linear:
      return freq / rope.factor;
    case RopeScaling::llama3:
      return llama3_frequency(rope, freq);
    case RopeScaling::yarn:
      return yarn_frequency(rope, pair, freq);
    case RopeScaling::longrope:
      return freq / rope.long_factors[pair];
    case RopeScaling::proportional:
      return pair < std::floor(rope.proportion * rope.rotary_dim / 2.0) ? freq / rope.factor : 0.0;
  }
  return freq;
}

std::vector<float> all_frequencies(const RopeConfig& rope, std::span<const float> freq_factors) {
  const uint32_t pairs = rope.rotary_dim / 2;
  if (!freq_factors.empty() && freq_factors.size() != pairs) {
    fail("rope frequency factors: expected {}, found {}", pairs, freq_factors.size());
  }
  std::vector<float> result;
  result.reserve(pairs);
  for (uint32_t i = 0; i < pairs; ++i) {
    double freq = frequency(rope, i);
    if (!freq_factors.empty()) {
      if (!(freq_factors[i] > 0.0F)) fail("rope frequency factor {} is {}", i, freq_factors[i]);
      freq /= freq_factors[i];
    }
    result.push_back(static_cast<float>(freq));
  }
  return result;
}

// Writes cosine and sine of a pair. The angle is rounded to f32 as in the reference; its cosine and
// sine are exact to f32.
void turn(uint32_t position, float frequency, float scale, float* out) {
  const double angle = static_cast<float>(position) * frequency;
  out[0] = static_cast<float>(std::cos(angle)) * scale;
  out[1] = static_cast<float>(std::sin(angle)) * scale;
}

}  // namespace

double yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

std::vector<uint8_t> rope_axes(const RopeConfig& rope) {
  std::vector<uint8_t> axes(rope.rotary_dim / 2, 0);
  const size_t step = rope.interleaved_sections ? rope.sections.size() : 1;
  size_t first = 0;  // of a chunk
  uint8_t axis = 0;
  for (const size_t section : rope.sections) {
    const size_t begin = rope.interleaved_sections ? axis : first;
    const size_t end = std::min(begin + section * step, axes.size());
    for (size_t i = begin; i < end; i += step) axes[i] = axis;
    first += section;
    ++axis;
  }
  return axes;
}

std::vector<float> rope_table(const RopeConfig& rope, uint32_t positions,
                              std::span<const float> freq_factors) {
  const std::vector<float> frequencies = all_frequencies(rope, freq_factors);
  const auto scale = static_cast<float>(attention_factor(rope));
  std::vector<float> table(size_t{positions} * rope.rotary_dim);
  for (uint32_t p = 0; p < positions; ++p) {
    float* row = &table[size_t{p} * rope.rotary_dim];
    for (size_t i = 0; i < frequencies.size(); ++i) turn(p, frequencies[i], scale, row + 2 * i);
  }
  return table;
}

std::vector<float> rope_rows(const RopeConfig& rope, std::span<const RopePosition> positions,
                             std::span<const float> freq_factors) {
  const std::vector<float> frequencies = all_frequencies(rope, freq_factors);
  const std::vector<uint8_t> axes = rope_axes(rope);
  const auto scale = static_cast<float>(attention_factor(rope));
  std::vector<float> table(positions.size() * rope.rotary_dim);
  for (size_t r = 0; r < positions.size(); ++r) {
    float* row = &table[r * rope.rotary_dim];
    for (size_t i = 0; i < frequencies.size(); ++i) {
      turn(positions[r][axes[i]], frequencies[i], scale, row + 2 * i);
    }
  }
  return table;
}

std::vector<float> query_scale_table(float beta, uint32_t context, uint32_t positions) {
  std::vector<float> table(positions);
  for (uint32_t p = 0; p < positions; ++p) {
    const uint32_t intervals = p / context;  // whole ones
    table[p] = 1.0F + beta * static_cast<float>(std::log1p(static_cast<double>(intervals)));
  }
  return table;
}

}  // namespace wisp::model
