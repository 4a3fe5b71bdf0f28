// Blocks of 32 values with one scale.
#include <algorithm>
#include <cmath>

#include "formats/codec.h"

namespace wisp::formats {

namespace {

constexpr size_t kBlock = 32;

// A level as an integer of [low, high]; NaN gives `low`, so that no input makes the cast undefined.
int to_level(float value, float low, float high) {
  return static_cast<int>(value > low ? std::min(value, high) : low);
}

// Nibbles as Q4_0 and Q4_1 lay them out: byte i holds level i low and level i + 16 high.
void store_nibbles(std::byte* to, const int (&levels)[kBlock]) {
  for (size_t i = 0; i < kBlock / 2; ++i) {
    to[i] = static_cast<std::byte>(levels[i] | levels[i + kBlock / 2] << 4);
  }
}

// The fifth bits of 32 levels are one u32: bit 4 of level i is its bit i.
int fifth_bit(uint32_t high, size_t i) { return static_cast<int>(high >> i & 1) << 4; }

float inverse(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

}  // namespace

// Q4_0, 18 bytes for 32 values; value = d * (q - 8)
//   0    f16 d
//   2    16 bytes     byte i: q[i] in the low nibble, q[i + 16] in the high
void dequantize_q4_0(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / kBlock; ++block, blocks += 18, out += kBlock) {
    const float d = load_f16(blocks);
    for (size_t i = 0; i < kBlock / 2; ++i) {
      const int packed = std::to_integer<int>(blocks[2 + i]);
      out[i] = d * static_cast<float>((packed & 15) - 8);
      out[i + kBlock / 2] = d * static_cast<float>((packed >> 4) - 8);
    }
  }
}

// Q4_1, 20 bytes for 32 values; value = d * q + m
//   0    f16 d        2    f16 m
//   4    16 bytes     as in Q4_0
void dequantize_q4_1(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / kBlock; ++block, blocks += 20, out += kBlock) {
    const float d = load_f16(blocks);
    const float m = load_f16(blocks + 2);
    for (size_t i = 0; i < kBlock / 2; ++i) {
      const int packed = std::to_integer<int>(blocks[4 + i]);
      out[i] = d * static_cast<float>(packed & 15) + m;
      out[i + kBlock / 2] = d * static_cast<float>(packed >> 4) + m;
    }
  }
}

// Q5_0, 22 bytes for 32 values; value = d * (q - 16)
//   0    f16 d        2    u32 fifth bits: bit i is bit 4 of q[i]
//   6    16 bytes     the low four bits as in Q4_0
void dequantize_q5_0(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / kBlock; ++block, blocks += 22, out += kBlock) {
    const float d = load_f16(blocks);
    const auto high = load<uint32_t>(blocks + 2);
    for (size_t i = 0; i < kBlock / 2; ++i) {
      const int packed = std::to_integer<int>(blocks[6 + i]);
      out[i] = d * static_cast<float>(((packed & 15) | fifth_bit(high, i)) - 16);
      out[i + kBlock / 2] =
          d * static_cast<float>((packed >> 4 | fifth_bit(high, i + kBlock / 2)) - 16);
    }
  }
}

// Q5_1, 24 bytes for 32 values; value = d * q + m
//   0    f16 d        2    f16 m        4    u32 fifth bits as in Q5_0
//   8    16 bytes     the low four bits as in Q4_0
void dequantize_q5_1(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / kBlock; ++block, blocks += 24, out += kBlock) {
    const float d = load_f16(blocks);
    const float m = load_f16(blocks + 2);
    const auto high = load<uint32_t>(blocks + 4);
    for (size_t i = 0; i < kBlock / 2; ++i) {
      const int packed = std::to_integer<int>(blocks[8 + i]);
      out[i] = d * static_cast<float>((packed & 15) | fifth_bit(high, i)) + m;
      out[i + kBlock / 2] =
          d * static_cast<float>(packed >> 4 | fifth_bit(high, i + kBlock / 2)) + m;
    }
  }
}

// Q8_0, 34 bytes for 32 values; value = d * q
//   0    f16 d
//   2    32 x i8 q
void dequantize_q8_0(const std::byte* blocks, float* out, size_t elements) {
  for (size_t block = 0; block < elements / kBlock; ++block, blocks += 34, out += kBlock) {
    const float d = load_f16(blocks);
    for (size_t i = 0; i < kBlock; ++i) {
      out[i] = d * static_cast<float>(load<int8_t>(blocks + 2 + i));
    }
  }
}

// The value of largest magnitude (the first of equals) becomes level 0, which is -8.
void quantize_q4_0(const float* values, std::byte* blocks, size_t elements) {
  for (size_t block = 0; block < elements / kBlock; ++block, blocks += 18, values += kBlock) {
    const float extreme = *std::max_element(
        values, values + kBlock, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    const float d = extreme / -8.0f;
    const float scale = inverse(d);
    int levels[kBlock];
    for (size_t i = 0; i < kBlock; ++i) {
      levels[i] = to_level(values[i] * scale + 8.5f, 0.0f, 15.0f);
    }
    store(blocks, f32_to_f16(d));
    store_nibbles(blocks + 2, levels);
  }
}

void quantize_q4_1(const float* values, std::byte* blocks, size_t elements) {
  for (size_t block = 0; block < elements / kBlock; ++block, blocks += 20, values += kBlock) {
    const auto [low, high] = std::minmax_element(values, values + kBlock);
    const float min = *low;
    const float d = (*high - min) / 15.0f;
    const float scale = inverse(d);
    int levels[kBlock];
    for (size_t i = 0; i < kBlock; ++i) {
      levels[i] = to_level((values[i] - min) * scale + 0.5f, 0.0f, 15.0f);
    }
    store(blocks, f32_to_f16(d));
    store(blocks + 2, f32_to_f16(min));
    store_nibbles(blocks + 4, levels);
  }
}

void quantize_q8_0(const float* values, std::byte* blocks, size_t elements) {
  for (size_t block = 0; block < elements / kBlock; ++block, blocks += 34, values += kBlock) {
    float largest = 0.0f;
    for (size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(values[i]));
    const float d = largest / 127.0f;
    const float scale = inverse(d);
    store(blocks, f32_to_f16(d));
    for (size_t i = 0; i < kBlock; ++i) {
      const int level = to_level(std::round(values[i] * scale), -128.0f, 127.0f);
      blocks[2 + i] = static_cast<std::byte>(level);
    }
  }
}

}  // namespace wisp::formats
