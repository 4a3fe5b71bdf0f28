// The dequantize and quantize functions that the table in dtype.cpp names. Block layouts are drawn
// above each implementation; all fields are little endian and unaligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/half.h"

namespace wisp::formats {

// A 16-bit or 32-bit field at any address.
template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

inline float load_f16(const std::byte* from) { return f16_to_f32(load<uint16_t>(from)); }

void dequantize_f32(const std::byte* blocks, float* out, size_t elements);
void dequantize_f16(const std::byte* blocks, float* out, size_t elements);
void dequantize_bf16(const std::byte* blocks, float* out, size_t elements);
void dequantize_q4_0(const std::byte* blocks, float* out, size_t elements);
void dequantize_q4_1(const std::byte* blocks, float* out, size_t elements);
void dequantize_q5_0(const std::byte* blocks, float* out, size_t elements);
void dequantize_q5_1(const std::byte* blocks, float* out, size_t elements);
void dequantize_q8_0(const std::byte* blocks, float* out, size_t elements);
void dequantize_q2_k(const std::byte* blocks, float* out, size_t elements);
void dequantize_q3_k(const std::byte* blocks, float* out, size_t elements);
void dequantize_q4_k(const std::byte* blocks, float* out, size_t elements);
void dequantize_q5_k(const std::byte* blocks, float* out, size_t elements);
void dequantize_q6_k(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq1_s(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq1_m(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq2_xxs(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq2_xs(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq2_s(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq3_xxs(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq3_s(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq4_nl(const std::byte* blocks, float* out, size_t elements);
void dequantize_iq4_xs(const std::byte* blocks, float* out, size_t elements);
void dequantize_tq1_0(const std::byte* blocks, float* out, size_t elements);
void dequantize_tq2_0(const std::byte* blocks, float* out, size_t elements);
void dequantize_mxfp4(const std::byte* blocks, float* out, size_t elements);
void dequantize_nvfp4(const std::byte* blocks, float* out, size_t elements);
void dequantize_i4_32(const std::byte* blocks, float* out, size_t elements);
void dequantize_i4_64(const std::byte* blocks, float* out, size_t elements);
void dequantize_i4_128(const std::byte* blocks, float* out, size_t elements);
void dequantize_i8_32(const std::byte* blocks, float* out, size_t elements);
void dequantize_i8_128(const std::byte* blocks, float* out, size_t elements);
void dequantize_f8_32(const std::byte* blocks, float* out, size_t elements);
void dequantize_f8_128(const std::byte* blocks, float* out, size_t elements);

void quantize_f32(const float* values, std::byte* blocks, size_t elements);
void quantize_f16(const float* values, std::byte* blocks, size_t elements);
void quantize_bf16(const float* values, std::byte* blocks, size_t elements);
void quantize_q4_0(const float* values, std::byte* blocks, size_t elements);
void quantize_q4_1(const float* values, std::byte* blocks, size_t elements);
void quantize_q8_0(const float* values, std::byte* blocks, size_t elements);

}  // namespace wisp::formats
