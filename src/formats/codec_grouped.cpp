// Blocks of groups with a scale of their own, as folders of Hugging Face have them.
#include "formats/codec.h"
#include "formats/half.h"

namespace wisp::formats {
namespace {

// value = d * (q - z)
//   0    f16 d        2    f16 z
//   4    of each 32 values 16 bytes: byte i: q[i] in the low nibble, q[i + 16] in the high
void dequantize_int4(const std::byte* blocks, float* out, size_t elements, size_t group) {
  for (size_t done = 0; done < elements; done += group, blocks += 4 + group / 2) {
    const float d = load_f16(blocks);
    const float zero = load_f16(blocks + 2);
    for (size_t i = 0; i < group; ++i) {
      const unsigned packed = std::to_integer<unsigned>(blocks[4 + i / 32 * 16 + i % 16]);
      const unsigned q = packed >> (i % 32 / 16 * 4) & 15;
      out[done + i] = d * (static_cast<float>(q) - zero);
    }
  }
}

// value = d * (q - z)
//   0    f16 d        2    f16 z        4    q, i8
void dequantize_int8(const std::byte* blocks, float* out, size_t elements, size_t group) {
  for (size_t done = 0; done < elements; done += group, blocks += 4 + group) {
    const float d = load_f16(blocks);
    const float zero = load_f16(blocks + 2);
    for (size_t i = 0; i < group; ++i) {
      out[done + i] = d * (static_cast<float>(load<int8_t>(blocks + 4 + i)) - zero);
    }
  }
}

// value = d * q
//   0    f32 d        4    q, e4m3
void dequantize_float8(const std::byte* blocks, float* out, size_t elements, size_t group) {
  for (size_t done = 0; done < elements; done += group, blocks += 4 + group) {
    const auto d = load<float>(blocks);
    for (size_t i = 0; i < group; ++i) {
      out[done + i] = d * e4m3_to_f32(load<uint8_t>(blocks + 4 + i));
    }
  }
}

}  // namespace

void dequantize_i4_32(const std::byte* blocks, float* out, size_t elements) {
  dequantize_int4(blocks, out, elements, 32);
}
void dequantize_i4_64(const std::byte* blocks, float* out, size_t elements) {
  dequantize_int4(blocks, out, elements, 64);
}
void dequantize_i4_128(const std::byte* blocks, float* out, size_t elements) {
  dequantize_int4(blocks, out, elements, 128);
}
void dequantize_i8_32(const std::byte* blocks, float* out, size_t elements) {
  dequantize_int8(blocks, out, elements, 32);
}
void dequantize_i8_128(const std::byte* blocks, float* out, size_t elements) {
  dequantize_int8(blocks, out, elements, 128);
}
void dequantize_f8_32(const std::byte* blocks, float* out, size_t elements) {
  dequantize_float8(blocks, out, elements, 32);
}
void dequantize_f8_128(const std::byte* blocks, float* out, size_t elements) {
  dequantize_float8(blocks, out, elements, 128);
}

}  // namespace wisp::formats
