// Blocks of 32 values with one scale, some with an offset. codec_legacy.cpp draws the layouts.
#include <array>

#include "formats/codec.h"
#include "formats/iq4_codes.h"
#include "formats/quantize_block.h"

namespace wisp::formats {

namespace {

constexpr size_t kBlock = 32;
using Levels = std::array<unsigned, kBlock>;

// Byte i holds the low four bits of level i, and of level i + 16 above them.
void store_nibbles(std::byte* to, const Levels& levels) {
  for (size_t i = 0; i < kBlock / 2; ++i) {
    to[i] = static_cast<std::byte>((levels[i] & 15) | (levels[i + kBlock / 2] & 15) << 4);
  }
}

// Bit i is the fifth bit of level i.
void store_fifth_bits(std::byte* to, const Levels& levels) {
  uint32_t bits = 0;
  for (size_t i = 0; i < kBlock; ++i) bits |= (levels[i] >> 4 & 1) << i;
  store(to, bits);
}

// Levels from 0 of the values, given what is stored.
Levels levels_of(const WeightedValues<kBlock>& values, const IntegerCodes& codes, float scale,
                 float offset = 0.0f) {
  const float inverse = inverse_or_zero(scale);
  Levels levels;
  for (size_t i = 0; i < kBlock; ++i) {
    const float code = codes.nearest((values.x[i] - offset) * inverse);
    levels[i] = static_cast<unsigned>(static_cast<int>(code - codes.low));
  }
  return levels;
}

// Codes from -half to half - 1; stores the scale.
template <int half>
Levels encode_symmetric(const float* from, const float* importance, std::byte* block) {
  static constexpr auto kTargets = symmetric_targets(half);
  const Block<kBlock> given(from, importance);
  const IntegerCodes codes{-half, half - 1};
  const ScaleFit fit = search_scale(given.values, codes, kTargets);
  const StoredScale scale = store_scale(fit.scale, given.exponent);
  store(block, scale.bits);
  return levels_of(given.values, codes, scale.value);
}

// Codes from 0 to high; stores the scale and the offset.
Levels encode_affine(const float* from, const float* importance, float high, std::byte* block) {
  const Block<kBlock> given(from, importance);
  const AffineFit fit =
      search_affine(CentredValues<kBlock>(given.values), {high, Offsets::any}, kAffineExtras);
  const StoredScale scale = store_scale(fit.scale, given.exponent);
  const StoredScale offset = store_scale(fit.offset, given.exponent);
  store(block, scale.bits);
  store(block + 2, offset.bits);
  return levels_of(given.values, {0.0f, high}, scale.value, offset.value);
}

}  // namespace

// The largest magnitude becomes 127: with 8 bits a search gains next to nothing.
void encode_block_q8_0(const float* from, const float* importance, std::byte* block) {
  const Block<kBlock> given(from, importance);
  float largest = 0.0f;
  for (const float x : given.values.x) largest = std::max(largest, std::fabs(x));
  const StoredScale scale = store_scale(largest / 127.0f, given.exponent);
  store(block, scale.bits);
  const float inverse = inverse_or_zero(scale.value);
  const IntegerCodes codes{-127.0f, 127.0f};
  for (size_t i = 0; i < kBlock; ++i) {
    const float code = codes.nearest(given.values.x[i] * inverse);
    store(block + 2 + i, static_cast<int8_t>(code));
  }
}

void encode_block_q4_0(const float* from, const float* importance, std::byte* block) {
  store_nibbles(block + 2, encode_symmetric<8>(from, importance, block));
}

void encode_block_q5_0(const float* from, const float* importance, std::byte* block) {
  const Levels levels = encode_symmetric<16>(from, importance, block);
  store_fifth_bits(block + 2, levels);
  store_nibbles(block + 6, levels);
}

void encode_block_q4_1(const float* from, const float* importance, std::byte* block) {
  store_nibbles(block + 4, encode_affine(from, importance, 15.0f, block));
}

void encode_block_q5_1(const float* from, const float* importance, std::byte* block) {
  const Levels levels = encode_affine(from, importance, 31.0f, block);
  store_fifth_bits(block + 4, levels);
  store_nibbles(block + 8, levels);
}

void encode_block_iq4_nl(const float* from, const float* importance, std::byte* block) {
  const Block<kBlock> given(from, importance);
  const Iq4Codes codes;
  const ScaleFit fit = search_scale(given.values, codes, kIq4Targets);
  const StoredScale scale = store_scale(fit.scale, given.exponent);
  store(block, scale.bits);
  const float inverse = inverse_or_zero(scale.value);
  Levels levels;
  for (size_t i = 0; i < kBlock; ++i) levels[i] = codes.index(given.values.x[i] * inverse);
  store_nibbles(block + 2, levels);
}

}  // namespace wisp::formats
