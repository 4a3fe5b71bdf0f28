// Conversions between f32 and the 16-bit floats, exact and the same on every machine.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace wisp::formats {

// IEEE binary16 bits to f32: exact, subnormals included. A NaN stays a NaN of its sign, quiet.
inline float f16_to_f32(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t magnitude = half & 0x7fffu;
  uint32_t bits = 0;
  if (magnitude >= 0x7c00) {
    bits = 0x7f800000u | magnitude << 13 | (magnitude > 0x7c00 ? 0x400000u : 0u);
  } else if (magnitude >= 0x400) {
    bits = (magnitude << 13) + 0x38000000u;  // the exponent bias grows from 15 to 127
  } else {
    bits = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  }
  return std::bit_cast<float>(sign | bits);
}

// f32 to IEEE binary16 bits, to nearest, ties to even; overflow gives infinity, underflow a
// subnormal or zero of the same sign, a NaN a quiet NaN.
inline uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | magnitude >> 13;
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal: rebias, add half an ulp less the even tie
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  } else {
    // Adding 0.5 aligns the value so that the f32 ulp is the half's subnormal step, 2^-24.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  }
  return static_cast<uint16_t>(sign | (half & 0x7fffu));
}

// bfloat16 is the upper half of an f32.
inline float bf16_to_f32(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << 16); }

// To nearest, ties to even; a NaN gives a quiet NaN.
inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// An 8-bit float of 4 bits of exponent and 3 of mantissa, which has no infinities: exact.
inline float e4m3_to_f32(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7fu;
  if (magnitude == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120f;  // the bias grows by 120
  return (bits & 0x80u) != 0 ? -value : value;
}

}  // namespace wisp::formats
