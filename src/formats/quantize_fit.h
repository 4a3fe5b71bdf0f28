// Weighted least squares over the scales of a group of values: for values x with weights w and a
// set of codes c, the scale d (and the offset m) for which sum w (x - d c - m)^2 is least when each
// value takes its nearest code. Candidates are tried, each with the scale re-fitted to its codes,
// and the best of them is repeated from its own scale until that brings nothing.
//
// Sums run over kLanes partial sums, so that they compile to vector code and have one order.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace wisp::formats {

inline constexpr size_t kLanes = 8;
// How often the best candidate is repeated from its own scale.
inline constexpr int kRepeats = 4;
// Magnitudes below this take code 0: their squares would vanish.
inline constexpr float kVanishing = 1e-18f;

// A sum in kLanes parts.
struct LaneSum {
  std::array<float, kLanes> parts{};

  float total() const {
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
           ((parts[1] + parts[5]) + (parts[3] + parts[7]));
  }
};

// To nearest, ties to even, for |value| < 2^22.
inline float round_small(float value) {
  constexpr float kShift = 0x1.8p23f;
  return (value + kShift) - kShift;
}

// Codes low, low + 1, ..., high.
struct IntegerCodes {
  float low;
  float high;

  float nearest(float value) const { return round_small(std::min(std::max(value, low), high)); }
};

// A group's values and their weights, which are above zero; magnitudes are near 1 or below.
template <size_t n>
struct WeightedValues {
  std::array<float, n> x;
  std::array<float, n> w;
};

// A scale and what it explains: the error is sum w x^2 - gain.
struct ScaleFit {
  float scale = 0.0f;
  float gain = 0.0f;
  float curvature = 0.0f;  // sum w c^2: the error rises by curvature * (change of scale)^2
};

// Codes by `inverse`, then the scale that fits these codes best.
template <size_t n, typename Codes>
ScaleFit fit_codes(const WeightedValues<n>& values, const Codes& codes, float inverse) {
  static_assert(n % kLanes == 0);
  LaneSum xc, cc;
  for (size_t i = 0; i < n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float x = values.x[i + lane];
      const float code = codes.nearest(x * inverse);
      const float weighted = values.w[i + lane] * code;
      xc.parts[lane] += weighted * x;
      cc.parts[lane] += weighted * code;
    }
  }
  const float square = cc.total();
  if (!(square > 0.0f)) return {};
  const float scale = xc.total() / square;
  return {scale, xc.total() * scale, square};
}

// The best scale found when the value of largest magnitude lands on each of `targets` in turn.
template <size_t n, typename Codes>
ScaleFit search_scale(const WeightedValues<n>& values, const Codes& codes,
                      std::span<const float> targets) {
  const float extreme = *std::max_element(values.x.begin(), values.x.end(), [](float a, float b) {
    return std::fabs(a) < std::fabs(b);
  });
  ScaleFit best;
  if (std::fabs(extreme) < kVanishing) return best;
  for (const float target : targets) {
    const ScaleFit fit = fit_codes(values, codes, target / extreme);
    if (fit.gain > best.gain) best = fit;
  }
  for (int i = 0; i < kRepeats && best.scale != 0.0f; ++i) {
    const ScaleFit fit = fit_codes(values, codes, 1.0f / best.scale);
    if (!(fit.gain > best.gain)) break;
    best = fit;
  }
  return best;
}

// sum w (x - scale * c - offset)^2 with each value's nearest code.
template <size_t n, typename Codes>
float coding_error(const WeightedValues<n>& values, const Codes& codes, float scale,
                   float offset = 0.0f) {
  const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
  LaneSum sum;
  for (size_t i = 0; i < n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float x = values.x[i + lane] - offset;
      const float error = x - scale * codes.nearest(x * inverse);
      sum.parts[lane] += values.w[i + lane] * error * error;
    }
  }
  return sum.total();
}

// x is near scale * c + offset, with codes from 0 up.
struct AffineFit {
  float scale = 0.0f;
  float offset = 0.0f;
  float gain = 0.0f;       // the error is sum w (x - mean)^2 - gain
  float curvature = 0.0f;  // sum w c^2
};

// A group for affine fits: the values less their weighted mean, which keeps the sums accurate.
template <size_t n>
struct CentredValues {
  WeightedValues<n> values;
  float mean = 0.0f;
  float weight = 0.0f;  // sum w

  explicit CentredValues(const WeightedValues<n>& from) : values(from) {
    LaneSum sum_w, sum_wx;
    for (size_t i = 0; i < n; ++i) {
      sum_w.parts[i % kLanes] += from.w[i];
      sum_wx.parts[i % kLanes] += from.w[i] * from.x[i];
    }
    weight = sum_w.total();
    mean = sum_wx.total() / weight;
    for (float& x : values.x) x -= mean;
  }
};

// Codes 0 to `high` of a type, and which offsets it can store.
enum class Offsets { any, not_positive };
struct AffineCodes {
  float high;
  Offsets offsets;
};

// Codes of (x - offset) * inverse, then the scale and offset that fit them best.
template <size_t n>
AffineFit fit_affine(const CentredValues<n>& group, const AffineCodes& type, float offset,
                     float inverse) {
  const IntegerCodes codes{0.0f, type.high};
  const float shift = group.mean - offset;
  LaneSum sum_c, sum_cc, sum_xc;
  for (size_t i = 0; i < n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float x = group.values.x[i + lane];
      const float code = codes.nearest((x + shift) * inverse);
      const float weighted = group.values.w[i + lane] * code;
      sum_c.parts[lane] += weighted;
      sum_cc.parts[lane] += weighted * code;
      sum_xc.parts[lane] += weighted * x;
    }
  }
  const float c = sum_c.total(), cc = sum_cc.total(), xc = sum_xc.total();
  const float spread = cc - c * (c / group.weight);  // sum w (c - mean of c)^2
  if (spread > 1e-6f * cc) {
    const float scale = xc / spread;
    const float best_offset = group.mean - scale * (c / group.weight);
    if (type.offsets == Offsets::any || best_offset <= 0.0f) {
      return {scale, best_offset, xc * scale, cc};
    }
  }
  if (type.offsets == Offsets::any || !(cc > 0.0f)) return {};
  const float product = xc + group.mean * c;  // sum w c x of the values themselves
  const float scale = product / cc;
  return {scale, 0.0f, scale * product - group.mean * group.mean * group.weight, cc};
}

// The best scale and offset found when the range of the values spans `high` plus each of `extras`
// in turn. The scale is not negative.
template <size_t n>
AffineFit search_affine(const CentredValues<n>& group, const AffineCodes& type,
                        std::span<const float> extras) {
  const auto [low_at, high_at] = std::minmax_element(group.values.x.begin(), group.values.x.end());
  float low = *low_at + group.mean;
  if (type.offsets == Offsets::not_positive) low = std::min(low, 0.0f);
  const float range = *high_at + group.mean - low;
  AffineFit best;  // no codes at all
  best.offset = type.offsets == Offsets::any ? group.mean : std::min(group.mean, 0.0f);
  const float missed = group.mean - best.offset;
  best.gain = -missed * missed * group.weight;
  if (!(range > kVanishing)) return best;
  for (const float extra : extras) {
    const AffineFit fit = fit_affine(group, type, low, (type.high + extra) / range);
    if (fit.gain > best.gain && fit.scale > 0.0f) best = fit;
  }
  for (int i = 0; i < kRepeats && best.scale > 0.0f; ++i) {
    const AffineFit fit = fit_affine(group, type, best.offset, 1.0f / best.scale);
    if (!(fit.gain > best.gain) || !(fit.scale > 0.0f)) break;
    best = fit;
  }
  return best;
}

}  // namespace wisp::formats
