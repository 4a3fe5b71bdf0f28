// Types whose quants name values of a table (codec_grids.h).
#include <bit>

#include "formats/codec.h"
#include "formats/codec_grids.h"

namespace wisp::formats {

namespace {

constexpr size_t kSuperBlock = 256;

unsigned bits(const std::byte* from, size_t shift, unsigned mask) {
  return std::to_integer<unsigned>(*from) >> shift & mask;
}

// 32 values from 16 bytes: byte i has the level of value i in the low nibble, of i + 16 in the
// high.
void put_iq4_levels(const std::byte* quants, float scale, float* out) {
  for (size_t i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(kIq4Levels[bits(quants + i, 0, 15)]);
    out[i + 16] = scale * static_cast<float>(kIq4Levels[bits(quants + i, 4, 15)]);
  }
}

// Writes the values of a grid's entry; a set bit i of `signs` makes value i negative.
template <typename Entry>
void put_entry(Entry entry, unsigned signs, float scale, float* out) {
  for (size_t i = 0; i < sizeof(Entry); ++i) {
    const float value = scale * static_cast<float>(entry >> (8 * i) & 255);
    out[i] = (signs >> i & 1) != 0 ? -value : value;
  }
}

// Seven signs are stored; the eighth makes the number of negative values even.
unsigned eight_signs(unsigned seven) {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1) << 7;
}

// (d * (0.5 + s)) * unit, rounded in this order.
float iq_scale(float d, unsigned s, float unit) {
  return d * (0.5f + static_cast<float>(s)) * unit;
}

// The 8 values of an entry of kIq1Grid, moved up or down by 1/8.
void put_iq1_entry(unsigned index, bool down, float scale, float* out) {
  const float shift = down ? -0.125f : 0.125f;
  for (size_t i = 0; i < 8; ++i) {
    const auto level = static_cast<int8_t>(kIq1Grid[index] >> (8 * i) & 255);
    out[i] = scale * (static_cast<float>(level) + shift);
  }
}

}  // namespace

// IQ1_S, 50 bytes for 256 values in 8 groups of 32; value = (d * (2 * s + 1)) * (grid +- 1/8)
//   0    f16 d
//   2    32 bytes     bits 0..7 of the index in kIq1Grid of each 8 values
//   34   8 x u16      one a group: bits 3j..3j+2 are bits 8..10 of index j, 12..14 are s,
//                     15 is set where 1/8 is subtracted
void dequantize_iq1_s(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 50;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks);
    for (size_t group = 0; group < 8; ++group) {
      const unsigned word = load<uint16_t>(blocks + 34 + 2 * group);
      const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
      for (size_t j = 0; j < 4; ++j, out += 8) {
        const unsigned low = bits(blocks + 2 + 4 * group + j, 0, 255);
        put_iq1_entry(low | (word >> (3 * j) & 7) << 8, word >> 15 != 0, scale, out);
      }
    }
  }
}

// IQ1_M, 56 bytes for 256 values in 16 groups of 16; value = (d * (2 * s + 1)) * (grid +- 1/8)
//   0    32 bytes     bits 0..7 of the index in kIq1Grid of each 8 values
//   32   16 bytes     one a group, a nibble for each of its two indices, low first: bits 0..2 are
//                     bits 8..10 of the index, bit 3 is set where 1/8 is subtracted
//   48   4 x u16      word w: bits 3j..3j+2 are s of group 4w + j, 12..15 are bits 4w..4w+3 of d
void dequantize_iq1_m(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 56;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const auto word = [&](size_t w) -> unsigned { return load<uint16_t>(blocks + 48 + 2 * w); };
    unsigned half = 0;
    for (size_t w = 0; w < 4; ++w) half |= word(w) >> 12 << (4 * w);
    const float d = f16_to_f32(static_cast<uint16_t>(half));
    for (size_t octet = 0; octet < 32; ++octet, out += 8) {
      const size_t group = octet / 2;
      const unsigned s = word(group / 4) >> (3 * (group % 4)) & 7;
      const unsigned low = bits(blocks + octet, 0, 255);
      const unsigned high = bits(blocks + 32 + group, octet % 2 * 4, 15);
      const float scale = d * static_cast<float>(2 * s + 1);
      put_iq1_entry(low | (high & 7) << 8, high >> 3 != 0, scale, out);
    }
  }
}

// IQ2_XXS, 66 bytes for 256 values in 8 groups of 32; value = +-((d * (0.5 + s)) / 4) * grid
//   0    f16 d
//   2    64 bytes     8 for each group: four indices in kIq2XxsGrid, each of 8 values, then a u32:
//                     bits 7j..7j+6 are signs of index j's values, see eight_signs; 28..31 are s
void dequantize_iq2_xxs(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 66;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks);
    for (size_t group = 0; group < 8; ++group) {
      const std::byte* indices = blocks + 2 + 8 * group;
      const auto word = load<uint32_t>(indices + 4);
      const float scale = iq_scale(d, word >> 28, 0.25f);
      for (size_t j = 0; j < 4; ++j, out += 8) {
        const unsigned signs = eight_signs(word >> (7 * j) & 127);
        put_entry(kIq2XxsGrid[bits(indices + j, 0, 255)], signs, scale, out);
      }
    }
  }
}

// IQ2_XS, 74 bytes for 256 values in 16 groups of 16; value = +-((d * (0.5 + s)) / 4) * grid
//   0    f16 d
//   2    32 x u16     one for 8 values: bits 0..8 index in kIq2XsGrid, 9..15 signs, see eight_signs
//   66   8 bytes      byte j: s of group 2j in the low nibble, of group 2j + 1 in the high
void dequantize_iq2_xs(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 74;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks);
    for (size_t octet = 0; octet < 32; ++octet, out += 8) {
      const unsigned word = load<uint16_t>(blocks + 2 + 2 * octet);
      const float scale = iq_scale(d, bits(blocks + 66 + octet / 4, octet / 2 % 2 * 4, 15), 0.25f);
      put_entry(kIq2XsGrid[word & 511], eight_signs(word >> 9), scale, out);
    }
  }
}

// IQ2_S, 82 bytes for 256 values in 16 groups of 16; value = +-((d * (0.5 + s)) / 4) * grid
//   0    f16 d
//   2    32 bytes     bits 0..7 of the index in kIq2SGrid of each 8 values
//   34   32 bytes     their signs, bit i for value i
//   66   8 bytes      byte j, bits 2k..2k+1: bits 8..9 of index 4j + k
//   74   8 bytes      s as in IQ2_XS
void dequantize_iq2_s(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 82;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks);
    for (size_t octet = 0; octet < 32; ++octet, out += 8) {
      const unsigned index =
          bits(blocks + 2 + octet, 0, 255) | bits(blocks + 66 + octet / 4, octet % 4 * 2, 3) << 8;
      const unsigned signs = bits(blocks + 34 + octet, 0, 255);
      const float scale = iq_scale(d, bits(blocks + 74 + octet / 4, octet / 2 % 2 * 4, 15), 0.25f);
      put_entry(kIq2SGrid[index], signs, scale, out);
    }
  }
}

// IQ3_XXS, 98 bytes for 256 values in 8 groups of 32; value = +-((d * (0.5 + s)) / 2) * grid
//   0    f16 d
//   2    64 bytes     the index in kIq3XxsGrid of each 4 values
//   66   8 x u32      one a group: signs and s as in IQ2_XXS
void dequantize_iq3_xxs(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 98;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks);
    for (size_t group = 0; group < 8; ++group) {
      const auto word = load<uint32_t>(blocks + 66 + 4 * group);
      const float scale = iq_scale(d, word >> 28, 0.5f);
      for (size_t j = 0; j < 8; ++j, out += 4) {
        const unsigned signs = eight_signs(word >> (j / 2 * 7) & 127) >> (j % 2 * 4);
        put_entry(kIq3XxsGrid[bits(blocks + 2 + 8 * group + j, 0, 255)], signs, scale, out);
      }
    }
  }
}

// IQ3_S, 110 bytes for 256 values in 8 groups of 32; value = +-(d * (2 * s + 1)) * grid
//   0    f16 d
//   2    64 bytes     bits 0..7 of the index in kIq3SGrid of each 4 values
//   66   8 bytes      one a group, bit j: bit 8 of its index j
//   74   32 bytes     one for 8 values, bit i: sign of value i
//   106  4 bytes      byte j: s of group 2j in the low nibble, of group 2j + 1 in the high
void dequantize_iq3_s(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 110;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks);
    for (size_t group = 0; group < 8; ++group) {
      const unsigned s = bits(blocks + 106 + group / 2, group % 2 * 4, 15);
      const float scale = d * static_cast<float>(2 * s + 1);
      for (size_t j = 0; j < 8; ++j, out += 4) {
        const unsigned index =
            bits(blocks + 2 + 8 * group + j, 0, 255) | bits(blocks + 66 + group, j, 1) << 8;
        const unsigned signs = bits(blocks + 74 + 4 * group + j / 2, j % 2 * 4, 15);
        put_entry(kIq3SGrid[index], signs, scale, out);
      }
    }
  }
}

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
      const unsigned packed =
          bits(blocks + 4 + group / 2, group % 2 * 4, 15) | (high >> (2 * group) & 3) << 4;
      const float scale = d * static_cast<float>(static_cast<int>(packed) - 32);
      put_iq4_levels(blocks + 8 + 16 * group, scale, out);
    }
  }
}

}  // namespace wisp::formats
