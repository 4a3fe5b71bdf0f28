// Super-blocks whose groups have a scale alone. codec_kquant.cpp and codec_iq.cpp draw the layouts.
#include <array>
#include <cmath>
#include <span>

#include "formats/codec.h"
#include "formats/iq4_codes.h"
#include "formats/quantize_super.h"

namespace wisp::formats {

namespace {

constexpr auto kTargets6 = symmetric_targets(32.0f);
constexpr std::array kByteTargets = {-128.0f, -127.5f, 127.0f, 126.5f};

// value = (d * s) * c
template <size_t groups>
struct ScaledBlock {
  StoredScale d;
  std::array<int, groups> s{};
  float error = 0.0f;
};

template <typename Codes>
struct ScaledType {
  Codes codes;
  IntegerCodes scales;
  std::span<const float> targets;        // for codes
  std::span<const float> scale_targets;  // for scales
};

// The best s of each group near `wanted`, the scales of the groups by themselves.
template <size_t size, typename Codes>
ScaledBlock<kSuperBlock / size> choose_scales(const Groups<size>& groups,
                                              const ScaledType<Codes>& type, StoredScale d,
                                              std::span<const float> wanted) {
  ScaledBlock<kSuperBlock / size> best{.d = d};
  const float inverse = inverse_or_zero(d.value);
  for (size_t i = 0; i < groups.size(); ++i) {
    const float centre = type.scales.nearest(wanted[i] * inverse);
    float least = INFINITY;
    for (const float step : {0.0f, -1.0f, 1.0f}) {
      const float s = centre + step;
      if (s < type.scales.low || s > type.scales.high) continue;
      const float error = coding_error(groups[i], type.codes, d.value * s);
      if (error < least) {
        least = error;
        best.s[i] = static_cast<int>(s);
      }
    }
    best.error += least;
  }
  return best;
}

// The d that is best for the codes as they are.
template <size_t size, typename Codes>
float refit(const Groups<size>& groups, const Codes& codes,
            const ScaledBlock<kSuperBlock / size>& block) {
  float xc = 0.0f, cc = 0.0f;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (block.s[i] == 0) continue;
    const auto s = static_cast<float>(block.s[i]);
    const ScaleFit fit = fit_codes(groups[i], codes, inverse_or_zero(block.d.value * s));
    xc += s * fit.scale * fit.curvature;
    cc += s * s * fit.curvature;
  }
  return cc > 0.0f ? xc / cc : 0.0f;
}

template <size_t size, typename Codes>
ScaledBlock<kSuperBlock / size> fit_scaled(const Block<kSuperBlock>& given,
                                           const ScaledType<Codes>& type) {
  constexpr size_t kGroups = kSuperBlock / size;
  const Groups<size> groups = split<size>(given.values);
  WeightedValues<kGroups> wanted;
  for (size_t i = 0; i < kGroups; ++i) {
    const ScaleFit fit = search_scale(groups[i], type.codes, type.targets);
    wanted.x[i] = fit.scale;
    wanted.w[i] = std::max(fit.curvature, kVanishing);
  }
  const auto at = [&](float d) {
    return choose_scales(groups, type, store_scale(d, given.exponent), wanted.x);
  };
  return improve(
      at(search_scale(wanted, type.scales, type.scale_targets).scale),
      [&](const ScaledBlock<kGroups>& block) { return at(refit(groups, type.codes, block)); });
}

}  // namespace

void encode_block_q6_k(const float* from, const float* importance, std::byte* block) {
  constexpr size_t kGroup = 16;
  const Block<kSuperBlock> given(from, importance);
  const IntegerCodes codes{-32.0f, 31.0f};
  const auto fit = fit_scaled<kGroup>(
      given, ScaledType<IntegerCodes>{codes, {-128.0f, 127.0f}, kTargets6, kByteTargets});
  std::array<unsigned, kSuperBlock> levels;
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const float scale = fit.d.value * static_cast<float>(fit.s[i / kGroup]);
    const float code = codes.nearest(given.values.x[i] * inverse_or_zero(scale));
    levels[i] = static_cast<unsigned>(static_cast<int>(code) + 32);
  }
  for (size_t half = 0; half < 2; ++half) {
    const unsigned* level = levels.data() + 128 * half;
    for (size_t i = 0; i < 64; ++i) {
      block[64 * half + i] = static_cast<std::byte>((level[i] & 15) | (level[i + 64] & 15) << 4);
    }
    for (size_t i = 0; i < 32; ++i) {
      block[128 + 32 * half + i] =
          static_cast<std::byte>(level[i] >> 4 | level[i + 32] >> 4 << 2 | level[i + 64] >> 4 << 4 |
                                 level[i + 96] >> 4 << 6);
    }
  }
  for (size_t i = 0; i < fit.s.size(); ++i) store(block + 192 + i, static_cast<int8_t>(fit.s[i]));
  store(block + 208, fit.d.bits);
}

void encode_block_iq4_xs(const float* from, const float* importance, std::byte* block) {
  constexpr size_t kGroup = 32;
  const Block<kSuperBlock> given(from, importance);
  const Iq4Codes codes;
  const auto fit = fit_scaled<kGroup>(
      given, ScaledType<Iq4Codes>{codes, {-32.0f, 31.0f}, kIq4Targets, kTargets6});
  store(block, fit.d.bits);
  uint16_t high_bits = 0;
  std::array<unsigned, 4> low_bits{};
  for (size_t group = 0; group < fit.s.size(); ++group) {
    const auto stored = static_cast<unsigned>(fit.s[group] + 32);
    high_bits = static_cast<uint16_t>(high_bits | (stored >> 4) << (2 * group));
    low_bits[group / 2] |= (stored & 15) << (group % 2 * 4);
    const float inverse = inverse_or_zero(fit.d.value * static_cast<float>(fit.s[group]));
    const float* x = given.values.x.data() + kGroup * group;
    for (size_t i = 0; i < 16; ++i) {
      block[8 + 16 * group + i] = static_cast<std::byte>(codes.index(x[i] * inverse) |
                                                         codes.index(x[i + 16] * inverse) << 4);
    }
  }
  store(block + 2, high_bits);
  for (size_t i = 0; i < 4; ++i) block[4 + i] = static_cast<std::byte>(low_bits[i]);
}

}  // namespace wisp::formats
