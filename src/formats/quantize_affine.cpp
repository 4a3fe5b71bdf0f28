// Super-blocks whose groups have a scale and an offset. codec_kquant.cpp draws the layouts.
#include <array>
#include <cmath>

#include "formats/codec.h"
#include "formats/quantize_super.h"

namespace wisp::formats {

namespace {

constexpr size_t kAffineGroups = 8;
constexpr size_t kAffineGroup = 32;
constexpr float kHighScale = 63.0f;

// Targets for scales from 0 to 63.
constexpr auto kScaleTargets = steps<32>(64.0f, -0.25f);

// value = (d * s) * q - dmin * m
struct AffineBlock {
  StoredScale d;
  StoredScale dmin;
  std::array<int, kAffineGroups> s{};
  std::array<int, kAffineGroups> m{};
  float error = 0.0f;
};

// The best fits of the groups by themselves: scale and minus the offset.
struct Wanted {
  WeightedValues<kAffineGroups> scale;
  WeightedValues<kAffineGroups> minimum;
};

// The best s and m of each group near what is wanted.
AffineBlock choose_affine(const Groups<kAffineGroup>& groups, const IntegerCodes& codes,
                          const AffineBlock& scales, const Wanted& wanted) {
  AffineBlock best{.d = scales.d, .dmin = scales.dmin};
  const IntegerCodes range{0.0f, kHighScale};
  const float inverse = inverse_or_zero(best.d.value);
  const float inverse_min = inverse_or_zero(best.dmin.value);
  for (size_t i = 0; i < groups.size(); ++i) {
    const float s0 = range.nearest(wanted.scale.x[i] * inverse);
    const float m0 = range.nearest(wanted.minimum.x[i] * inverse_min);
    float least = INFINITY;
    for (const float ds : {0.0f, -1.0f, 1.0f}) {
      for (const float dm : {0.0f, -1.0f, 1.0f}) {
        const float s = s0 + ds, m = m0 + dm;
        if (s < 0.0f || s > kHighScale || m < 0.0f || m > kHighScale) continue;
        const float error = coding_error(groups[i], codes, best.d.value * s, -best.dmin.value * m);
        if (error < least) {
          least = error;
          best.s[i] = static_cast<int>(s);
          best.m[i] = static_cast<int>(m);
        }
      }
    }
    best.error += least;
  }
  return best;
}

struct Pair {
  float d;
  float dmin;
};

// The d and dmin that are best for the codes as they are: x is near d * (s q) + dmin * (-m).
Pair refit(const Groups<kAffineGroup>& groups, const IntegerCodes& codes,
           const AffineBlock& block) {
  double uu = 0, uv = 0, vv = 0, xu = 0, xv = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto s = static_cast<float>(block.s[i]), m = static_cast<float>(block.m[i]);
    const float inverse = inverse_or_zero(block.d.value * s);
    const float offset = -block.dmin.value * m;
    LaneSum q, qq, xq, w, x;
    for (size_t k = 0; k < kAffineGroup; ++k) {
      const size_t lane = k % kLanes;
      const float value = groups[i].x[k];
      const float code = codes.nearest((value - offset) * inverse);
      const float weighted = groups[i].w[k] * code;
      q.parts[lane] += weighted;
      qq.parts[lane] += weighted * code;
      xq.parts[lane] += weighted * value;
      w.parts[lane] += groups[i].w[k];
      x.parts[lane] += groups[i].w[k] * value;
    }
    uu += static_cast<double>(s * s * qq.total());
    uv -= static_cast<double>(s * m * q.total());
    vv += static_cast<double>(m * m * w.total());
    xu += static_cast<double>(s * xq.total());
    xv -= static_cast<double>(m * x.total());
  }
  const double det = uu * vv - uv * uv;
  if (det > 1e-9 * uu * vv) {
    return {static_cast<float>((xu * vv - xv * uv) / det),
            static_cast<float>((xv * uu - xu * uv) / det)};
  }
  return {uu > 0 ? static_cast<float>(xu / uu) : 0.0f, vv > 0 ? static_cast<float>(xv / vv) : 0.0f};
}

AffineBlock fit_affine_block(const Block<kSuperBlock>& given, float high) {
  const Groups<kAffineGroup> groups = split<kAffineGroup>(given.values);
  const IntegerCodes codes{0.0f, high};
  const IntegerCodes range{0.0f, kHighScale};
  Wanted wanted;
  for (size_t i = 0; i < kAffineGroups; ++i) {
    const CentredValues<kAffineGroup> centred(groups[i]);
    const AffineFit fit = search_affine(centred, {high, Offsets::not_positive}, kAffineExtras);
    wanted.scale.x[i] = fit.scale;
    wanted.scale.w[i] = std::max(fit.curvature, kVanishing);
    wanted.minimum.x[i] = -fit.offset;
    wanted.minimum.w[i] = centred.weight;
  }
  const auto at = [&](const Pair& pair) {
    const AffineBlock scales{.d = store_scale(pair.d, given.exponent),
                             .dmin = store_scale(pair.dmin, given.exponent)};
    return choose_affine(groups, codes, scales, wanted);
  };
  return improve(at({search_scale(wanted.scale, range, kScaleTargets).scale,
                     search_scale(wanted.minimum, range, kScaleTargets).scale}),
                 [&](const AffineBlock& block) { return at(refit(groups, codes, block)); });
}

using Levels = std::array<unsigned, kSuperBlock>;

Levels affine_levels(const Block<kSuperBlock>& given, const AffineBlock& block, float high) {
  const IntegerCodes codes{0.0f, high};
  Levels levels;
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const size_t group = i / kAffineGroup;
    const float inverse = inverse_or_zero(block.d.value * static_cast<float>(block.s[group]));
    const float offset = -block.dmin.value * static_cast<float>(block.m[group]);
    levels[i] = static_cast<unsigned>(
        static_cast<int>(codes.nearest((given.values.x[i] - offset) * inverse)));
  }
  return levels;
}

// d, dmin and the 12 bytes of scales and minimums, see unpack_scale_min in codec_kquant.cpp.
void store_affine(std::byte* to, const AffineBlock& block) {
  store(to, block.d.bits);
  store(to + 2, block.dmin.bits);
  for (size_t i = 0; i < 4; ++i) {
    to[4 + i] = static_cast<std::byte>(block.s[i] | block.s[i + 4] >> 4 << 6);
    to[8 + i] = static_cast<std::byte>(block.m[i] | block.m[i + 4] >> 4 << 6);
    to[12 + i] = static_cast<std::byte>((block.s[i + 4] & 15) | (block.m[i + 4] & 15) << 4);
  }
}

// Byte 32 * p + i: the low four bits of level i of group 2p, and of group 2p + 1 above them.
void store_pair_nibbles(std::byte* to, const Levels& levels) {
  for (size_t i = 0; i < kSuperBlock / 2; ++i) {
    const size_t first = i / 32 * 64 + i % 32;
    to[i] = static_cast<std::byte>((levels[first] & 15) | (levels[first + 32] & 15) << 4);
  }
}

}  // namespace

void encode_block_q4_k(const float* from, const float* importance, std::byte* block) {
  constexpr float kHigh = 15.0f;
  const Block<kSuperBlock> given(from, importance);
  const AffineBlock fit = fit_affine_block(given, kHigh);
  store_affine(block, fit);
  store_pair_nibbles(block + 16, affine_levels(given, fit, kHigh));
}

void encode_block_q5_k(const float* from, const float* importance, std::byte* block) {
  constexpr float kHigh = 31.0f;
  const Block<kSuperBlock> given(from, importance);
  const AffineBlock fit = fit_affine_block(given, kHigh);
  store_affine(block, fit);
  const Levels levels = affine_levels(given, fit, kHigh);
  for (size_t i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (size_t group = 0; group < 8; ++group) bits |= (levels[32 * group + i] >> 4) << group;
    block[16 + i] = static_cast<std::byte>(bits);
  }
  store_pair_nibbles(block + 48, levels);
}

}  // namespace wisp::formats
