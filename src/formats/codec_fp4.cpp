// Blocks of 4-bit floats (e2m1) with a scale of one byte.
#include <cmath>

#include "formats/codec.h"
#include "formats/codec_grids.h"

namespace wisp::formats {

namespace {

// Half the value of an 8-bit float without sign (ue4m3: bits 3..6 exponent, 0..2 mantissa; bit 7 is
// not read): kFp4Levels are doubled. 0x7f, its NaN, is 0.
float half_of_ue4m3(std::byte byte) {
  if (byte == std::byte{0x7f}) return 0.0f;
  const int exponent = std::to_integer<int>(byte >> 3 & std::byte{15});
  const int mantissa = std::to_integer<int>(byte & std::byte{7});
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), -10);
  return std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}

// 2 * count values from `count` bytes: byte i has the level of value i in the low nibble, of value
// i + count in the high.
void put_fp4_levels(const std::byte* quants, size_t count, float scale, float* out) {
  for (size_t i = 0; i < count; ++i) {
    const unsigned packed = std::to_integer<unsigned>(quants[i]);
    out[i] = scale * static_cast<float>(kFp4Levels[packed & 15]);
    out[i + count] = scale * static_cast<float>(kFp4Levels[packed >> 4]);
  }
}

}  // namespace

// MXFP4, 17 bytes for 32 values; value = 2^(e - 128) * kFp4Levels[q], which are doubled
//   0    u8 e         (e8m0; 255 is no NaN here)
//   1    16 bytes     byte i: q[i] in the low nibble, q[i + 16] in the high
void dequantize_mxfp4(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / 32; ++block, blocks += 17, out += 32) {
    const float scale = std::ldexp(1.0f, std::to_integer<int>(blocks[0]) - 128);
    put_fp4_levels(blocks + 1, 16, scale, out);
  }
}

// NVFP4, 36 bytes for 64 values in 4 groups of 16; value = half_of_ue4m3(s) * kFp4Levels[q]
//   0    4 x u8 s     one a group
//   4    32 bytes     byte 8 * g + i: q of value i of group g in the low nibble, of i + 8 in the
//   high
void dequantize_nvfp4(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / 64; ++block, blocks += 36) {
    for (size_t group = 0; group < 4; ++group, out += 16) {
      put_fp4_levels(blocks + 4 + 8 * group, 8, half_of_ue4m3(blocks[group]), out);
    }
  }
}

}  // namespace wisp::formats
