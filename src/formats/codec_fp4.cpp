// Blocks of 4-bit floats (e2m1) with a scale of one byte.
#include <cmath>

#include "formats/codec.h"
#include "formats/codec_grids.h"

namespace wisp::formats {

// MXFP4, 17 bytes for 32 values; value = 2^(e - 128) * kFp4Levels[q], which are doubled
//   0    u8 e         (e8m0; 255 is no NaN here)
//   1    16 bytes     byte i: q[i] in the low nibble, q[i + 16] in the high
void dequantize_mxfp4(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / 32; ++block, blocks += 17, out += 32) {
    const float scale = std::ldexp(1.0f, std::to_integer<int>(blocks[0]) - 128);
    for (size_t i = 0; i < 16; ++i) {
      const unsigned packed = std::to_integer<unsigned>(blocks[1 + i]);
      out[i] = scale * static_cast<float>(kFp4Levels[packed & 15]);
      out[i + 16] = scale * static_cast<float>(kFp4Levels[packed >> 4]);
    }
  }
}

}  // namespace wisp::formats
