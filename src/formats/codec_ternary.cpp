// Super-blocks of 256 values that are -d, 0 or d.
#include "formats/codec.h"

namespace wisp::formats {

namespace {

constexpr size_t kSuperBlock = 256;

// Bytes that hold several base-3 digits each, as the fraction byte / 256 rounded up: digit k of
// byte i, counted from the highest, is value count * k + i. Returns the end of what it wrote.
float* put_digits(const std::byte* bytes, size_t count, size_t digits, float d, float* out) {
  unsigned power = 1;
  for (size_t k = 0; k < digits; ++k, power *= 3, out += count) {
    for (size_t i = 0; i < count; ++i) {
      const unsigned fraction = std::to_integer<unsigned>(bytes[i]) * power & 255;
      out[i] = d * static_cast<float>(static_cast<int>(fraction * 3 >> 8) - 1);
    }
  }
  return out;
}

}  // namespace

// TQ1_0, 54 bytes for 256 values; value = d * (q - 1), q from 0 to 2, see put_digits
//   0    32 bytes     five of the first 160 values each
//   32   16 bytes     five of the next 80 each
//   48   4 bytes      four of the last 16 each
//   52   f16 d
void dequantize_tq1_0(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 54;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks + 52);
    out = put_digits(blocks, 32, 5, d, out);
    out = put_digits(blocks + 32, 16, 5, d, out);
    out = put_digits(blocks + 48, 4, 4, d, out);
  }
}

// TQ2_0, 66 bytes for 256 values; value = d * (q - 1); q is below 3, but 3 is decoded too
//   0    64 bytes     byte 32 * h + i, bits 2k..2k+1: q[128 * h + 32 * k + i]
//   64   f16 d
void dequantize_tq2_0(const std::byte* blocks, float* out, size_t elements) {
  constexpr size_t kBytes = 66;
  for (size_t block = 0; block < elements / kSuperBlock; ++block, blocks += kBytes) {
    const float d = load_f16(blocks + 64);
    for (size_t part = 0; part < 8; ++part, out += 32) {
      const std::byte* quants = blocks + 32 * (part / 4);
      for (size_t i = 0; i < 32; ++i) {
        const int q = std::to_integer<int>(quants[i] >> (part % 4 * 2) & std::byte{3});
        out[i] = d * static_cast<float>(q - 1);
      }
    }
  }
}

}  // namespace wisp::formats
