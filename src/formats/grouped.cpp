#include "formats/grouped.h"

#include <cmath>

#include "base/error.h"
#include "formats/codec.h"
#include "formats/half.h"

namespace wisp::formats {
namespace {

uint64_t largest_block(uint64_t cols, uint64_t group) {
  for (const uint64_t block : {uint64_t{128}, uint64_t{64}, uint64_t{32}}) {
    if (group % block == 0 && cols % block == 0) return block;
  }
  return 0;
}

// Index of the scale of code `i`.
uint64_t group_at(const GroupedMatrix& m, uint64_t i) {
  return i / m.cols * (m.cols / m.group) + i % m.cols / m.group;
}

std::vector<std::byte> plain_rows(const GroupedMatrix& m, auto&& value_of) {
  std::vector<std::byte> out(m.rows * m.cols * sizeof(float));
  for (uint64_t i = 0; i < m.rows * m.cols; ++i) {
    store(&out[i * sizeof(float)], value_of(m.codes[i], group_at(m, i)));
  }
  return out;
}

// `write(to, codes, at)` writes a block of zeros anew from its codes and the scale at `at`.
std::vector<std::byte> block_rows(const GroupedMatrix& m, const DTypeInfo& info, auto&& write) {
  const uint64_t block = info.block_elements;
  std::vector<std::byte> out(m.rows * (m.cols / block) * info.block_bytes);
  std::byte* to = out.data();
  for (uint64_t first = 0; first < m.rows * m.cols; first += block, to += info.block_bytes) {
    write(to, m.codes.data() + first, group_at(m, first));
  }
  return out;
}

uint16_t half_scale(float scale) {
  const uint16_t half = f32_to_f16(scale);
  if (std::isfinite(scale) && !std::isfinite(f16_to_f32(half))) {
    fail("a scale of {} is beyond f16", scale);
  }
  return half;
}

}  // namespace

DType grouped_type(uint32_t bits, uint64_t cols, uint64_t group) {
  const uint64_t block = largest_block(cols, group);
  if (block == 0) return DType::F32;
  if (bits == 8) return block == 128 ? DType::I8_128 : DType::I8_32;
  return block == 128 ? DType::I4_128 : block == 64 ? DType::I4_64 : DType::I4_32;
}

DType float8_type(uint64_t cols, uint64_t group) {
  const uint64_t block = largest_block(cols, group);
  if (block == 0) return DType::F32;
  return block == 128 ? DType::F8_128 : DType::F8_32;
}

std::vector<std::byte> grouped_rows(const GroupedMatrix& m, DType dtype) {
  if (dtype == DType::F32) {
    return plain_rows(m, [&](uint8_t code, uint64_t at) {
      return m.scales[at] * (static_cast<float>(code) - m.zeros[at]);
    });
  }
  const DTypeInfo& info = dtype_info(dtype);
  const uint64_t block = info.block_elements;
  const bool bytes = info.block_bytes == 4 + block;
  return block_rows(m, info, [&](std::byte* to, const uint8_t* codes, uint64_t at) {
    store(to, half_scale(m.scales[at]));
    store(to + 2, f32_to_f16(bytes ? m.zeros[at] - 128.0F : m.zeros[at]));
    for (uint64_t i = 0; i < block; ++i) {
      if (bytes) {
        to[4 + i] = static_cast<std::byte>(codes[i] ^ 128);
      } else {
        to[4 + i / 32 * 16 + i % 16] |= static_cast<std::byte>(codes[i] << (i % 32 / 16 * 4));
      }
    }
  });
}

std::vector<std::byte> float8_rows(const GroupedMatrix& m, DType dtype) {
  if (dtype == DType::F32) {
    return plain_rows(m,
                      [&](uint8_t code, uint64_t at) { return m.scales[at] * e4m3_to_f32(code); });
  }
  const DTypeInfo& info = dtype_info(dtype);
  return block_rows(m, info, [&](std::byte* to, const uint8_t* codes, uint64_t at) {
    store(to, m.scales[at]);
    std::memcpy(to + 4, codes, info.block_elements);
  });
}

}  // namespace wisp::formats
