// Types that store each value by itself.
#include <cstring>

#include "formats/codec.h"

namespace wisp::formats {

void dequantize_f32(const std::byte* blocks, float* out, size_t elements) {
  if (elements > 0) std::memcpy(out, blocks, elements * sizeof(float));
}

void dequantize_f16(const std::byte* blocks, float* out, size_t elements) {
  for (size_t i = 0; i < elements; ++i) out[i] = load_f16(blocks + 2 * i);
}

void dequantize_bf16(const std::byte* blocks, float* out, size_t elements) {
  for (size_t i = 0; i < elements; ++i) out[i] = bf16_to_f32(load<uint16_t>(blocks + 2 * i));
}

void quantize_f32(const float* values, std::byte* blocks, size_t elements) {
  if (elements > 0) std::memcpy(blocks, values, elements * sizeof(float));
}

void quantize_f16(const float* values, std::byte* blocks, size_t elements) {
  for (size_t i = 0; i < elements; ++i) store(blocks + 2 * i, f32_to_f16(values[i]));
}

void quantize_bf16(const float* values, std::byte* blocks, size_t elements) {
  for (size_t i = 0; i < elements; ++i) store(blocks + 2 * i, f32_to_bf16(values[i]));
}

}  // namespace wisp::formats
