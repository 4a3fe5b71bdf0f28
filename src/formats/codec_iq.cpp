// Types whose quants name values of a table (codec_grids.h).
#include "formats/codec.h"
#include "formats/codec_grids.h"

namespace wisp::formats {

namespace {

constexpr size_t kSuperBlock = 256;

// 32 values from 16 bytes: byte i has the level of value i in the low nibble, of i + 16 in the
// high.
void put_iq4_levels(const std::byte* quants, float scale, float* out) {
  for (size_t i = 0; i < 16; ++i) {
    const unsigned packed = std::to_integer<unsigned>(quants[i]);
    out[i] = scale * static_cast<float>(kIq4Levels[packed & 15]);
    out[i + 16] = scale * static_cast<float>(kIq4Levels[packed >> 4]);
  }
}

}  // namespace

// IQ4_NL, 18 bytes for 32 values; value = d * kIq4Levels[q]
//   0    f16 d
//   2    16 bytes     byte i: q[i] in the low nibble, q[i + 16] in the high
void dequantize_iq4_nl(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / 32; ++block, blocks += 18, out += 32) {
    put_iq4_levels(blocks + 2, load_f16(blocks), out);
  }
}

// IQ4_XS, 136 bytes for 256 values in 8 groups of 32; value = (d * (s - 32)) * kIq4Levels[q]
//   0    f16 d        2    u16 bits 2g..2g+1: bits 4..5 of s[g]
//   4    4 bytes      byte j: bits 0..3 of s[2 * j] in the low nibble, of s[2 * j + 1] in the high
//   8    128 bytes    16 for each group, as in IQ4_NL
void dequantize_iq4_xs(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 136;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks);
    const unsigned high = load<uint16_t>(blocks + 2);
    for (size_t group = 0; group < 8; ++group, out += 32) {
      const unsigned low = std::to_integer<unsigned>(blocks[4 + group / 2]) >> (group % 2 * 4);
      const unsigned packed = (low & 15) | (high >> (2 * group) & 3) << 4;
      const float scale = d * static_cast<float>(static_cast<int>(packed) - 32);
      put_iq4_levels(blocks + 8 + 16 * group, scale, out);
    }
  }
}

}  // namespace wisp::formats
