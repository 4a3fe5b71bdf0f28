// Super-blocks of 256 values with scales of their own for each 16 or 32.
#include "formats/codec.h"

namespace wisp::formats {

namespace {

constexpr size_t kSuperBlock = 256;

struct ScaleMin {
  uint8_t scale;
  uint8_t min;
};

// Eight 6-bit scales s and eight 6-bit minimums m in 12 bytes:
//   byte 0..3    low 6 bits s[0..3], high 2 bits: bits 4..5 of s[4..7]
//   byte 4..7    low 6 bits m[0..3], high 2 bits: bits 4..5 of m[4..7]
//   byte 8..11   low nibble: bits 0..3 of s[4..7], high nibble: bits 0..3 of m[4..7]
ScaleMin unpack_scale_min(const std::byte* packed, size_t index) {
  const auto byte = [&](size_t i) { return std::to_integer<unsigned>(packed[i]); };
  if (index < 4) {
    return {static_cast<uint8_t>(byte(index) & 63), static_cast<uint8_t>(byte(index + 4) & 63)};
  }
  const unsigned low = byte(index + 4);
  return {static_cast<uint8_t>((low & 15) | (byte(index - 4) >> 6) << 4),
          static_cast<uint8_t>((low >> 4) | (byte(index) >> 6) << 4)};
}

// Q4_K, and Q5_K, which has 32 bytes of upper bits before the nibbles.
template <bool kFiveBits>
void dequantize_scale_min(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = kFiveBits ? 176 : 144;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks);
    const float dmin = load_f16(blocks + 2);
    const std::byte* high = blocks + 16;
    for (size_t group = 0; group < 8; ++group, out += 32) {
      const ScaleMin packed = unpack_scale_min(blocks + 4, group);
      const float scale = d * static_cast<float>(packed.scale);
      const float min = dmin * static_cast<float>(packed.min);
      const std::byte* low = blocks + kBytes - 128 + 32 * (group / 2);
      const unsigned shift = group % 2 * 4;
      for (size_t i = 0; i < 32; ++i) {
        unsigned q = std::to_integer<unsigned>(low[i]) >> shift & 15;
        if (kFiveBits) q |= (std::to_integer<unsigned>(high[i]) >> group & 1) << 4;
        out[i] = scale * static_cast<float>(q) - min;
      }
    }
  }
}

}  // namespace

// Q2_K, 84 bytes for 256 values in 16 groups of 16; value = (d * s) * q - dmin * m
//   0    16 bytes     byte g: s of group g in the low nibble, m in the high
//   16   64 bytes     byte 32 * h + i, bits 2k..2k+1: q[128 * h + 32 * k + i]
//   80   f16 d        82   f16 dmin
void dequantize_q2_k(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 84;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks + 80);
    const float dmin = load_f16(blocks + 82);
    for (size_t group = 0; group < 16; ++group, out += 16) {
      const unsigned packed = std::to_integer<unsigned>(blocks[group]);
      const float scale = d * static_cast<float>(packed & 15);
      const float min = dmin * static_cast<float>(packed >> 4);
      const std::byte* quants = blocks + 16 + 32 * (group / 8) + 16 * (group % 2);
      const unsigned shift = group / 2 % 4 * 2;
      for (size_t i = 0; i < 16; ++i) {
        const unsigned q = std::to_integer<unsigned>(quants[i]) >> shift & 3;
        out[i] = scale * static_cast<float>(q) - min;
      }
    }
  }
}

// Q3_K, 110 bytes for 256 values in 16 groups of 16; value = (d * (s - 32)) * (q - 4)
//   0    32 bytes     byte i, bit 4h + k: bit 2 of q[128 * h + 32 * k + i]
//   32   64 bytes     the low two bits of q as in Q2_K
//   96   12 bytes     byte j < 8: bits 0..3 of s[j] in the low nibble, of s[j + 8] in the high
//                     byte 8 + j, bits 2k..2k+1: bits 4..5 of s[4 * k + j]
//   108  f16 d
void dequantize_q3_k(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 110;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks + 108);
    const std::byte* scales = blocks + 96;
    for (size_t group = 0; group < 16; ++group, out += 16) {
      const unsigned low_scale = std::to_integer<unsigned>(scales[group % 8]) >> (group / 8 * 4);
      const unsigned high_scale =
          std::to_integer<unsigned>(scales[8 + group % 4]) >> (group / 4 * 2);
      const unsigned packed = (low_scale & 15) | (high_scale & 3) << 4;
      const float scale = d * static_cast<float>(static_cast<int>(packed) - 32);
      const std::byte* high = blocks + 16 * (group % 2);
      const std::byte* low = blocks + 32 + 32 * (group / 8) + 16 * (group % 2);
      const unsigned shift = group / 2 % 4 * 2;
      for (size_t i = 0; i < 16; ++i) {
        const unsigned q = (std::to_integer<unsigned>(low[i]) >> shift & 3) |
                           (std::to_integer<unsigned>(high[i]) >> (group / 2) & 1) << 2;
        out[i] = scale * static_cast<float>(static_cast<int>(q) - 4);
      }
    }
  }
}

// Q4_K, 144 bytes for 256 values in 8 groups of 32; value = (d * s) * q - dmin * m
//   0    f16 d        2    f16 dmin
//   4    12 bytes     s and m of the groups, see unpack_scale_min
//   16   128 bytes    byte 32 * p + i: q of group 2p in the low nibble, of group 2p + 1 in the high
void dequantize_q4_k(const std::byte* blocks, float* out, size_t elements) {
  dequantize_scale_min<false>(blocks, out, elements);
}

// Q5_K, 176 bytes for 256 values in 8 groups of 32; value = (d * s) * q - dmin * m
//   0    f16 d        2    f16 dmin     4    12 bytes s and m as in Q4_K
//   16   32 bytes     byte i, bit g: bit 4 of q i of group g
//   48   128 bytes    the low four bits of q as in Q4_K
void dequantize_q5_k(const std::byte* blocks, float* out, size_t elements) {
  dequantize_scale_min<true>(blocks, out, elements);
}

// Q6_K, 210 bytes for 256 values in 16 groups of 16; value = (d * s) * (q - 32)
//   0    128 bytes    low nibbles       128  64 bytes   high bit pairs
//   192  16 x i8 s, one a group         208  f16 d
// Each half h of 128 values has 64 low bytes and 32 high bytes. Its value 32 * k + i (k < 4) has
// the low bits in byte 32 * (k % 2) + i, low nibble for k < 2, and the high bits in byte i, bits
// 2k..2k+1.
void dequantize_q6_k(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 210;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks + 208);
    for (size_t part = 0; part < 8; ++part, out += 32) {
      const size_t half = part / 4;
      const size_t k = part % 4;
      const std::byte* low = blocks + 64 * half + 32 * (k % 2);
      const std::byte* high = blocks + 128 + 32 * half;
      const std::byte* scales = blocks + 192 + 2 * part;
      for (size_t i = 0; i < 32; ++i) {
        const unsigned q = (std::to_integer<unsigned>(low[i]) >> (k / 2 * 4) & 15) |
                           (std::to_integer<unsigned>(high[i]) >> (2 * k) & 3) << 4;
        const float scale = d * static_cast<float>(load<int8_t>(scales + i / 16));
        out[i] = scale * static_cast<float>(static_cast<int>(q) - 32);
      }
    }
  }
}

}  // namespace wisp::formats
