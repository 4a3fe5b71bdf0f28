// How values, weights and KV rows lie in device memory. docs/kernels.md draws the planes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/dtype.h"
#include "plan/plan.h"

namespace wisp::backend::webgpu {

// Rows of a value between the form of plan.h and the device's: padded, and with the first halves of
// all blocks of q8 quants before the second halves (kernels/lib/q8_block.wgsl). `from` has whole
// rows.
std::vector<std::byte> to_device(const plan::Value& value, std::span<const std::byte> from);
std::vector<std::byte> from_device(const plan::Value& value, std::span<const std::byte> from);

// 32-bit words from one row of a value to the next. Kernels read rows as vectors of 16 bytes, so
// rows end in padding: f32 rows to 4 elements, q8 rows (quants, scales, sums) to 4 words.
uint32_t value_stride(const plan::Value& value);

// Elements from one row of the KV pages to the next: vectors of 8. The padding stays zero.
uint32_t kv_stride(uint32_t dim);
// Words of a row of a state.
uint32_t state_stride(uint32_t width);

// Bytes of a stored block.
struct BlockField {
  uint8_t offset = 0;
  uint8_t bytes = 0;  // 0: no field
};

// One weight type on the device. Plane 0: of each block the fields `data`, one after the other,
// padded to 16 bytes. Plane 1: `table`, then of each block the fields `side`; `side_blocks` blocks
// lie together, field by field, padded to words unless a block has one or two bytes there. Plain
// types have rows padded to 16 bytes in plane 0.
struct WeightLayout {
  uint32_t block_elements = 1;
  uint32_t block_bytes = 0;  // as stored
  std::array<BlockField, 2> data;
  std::array<BlockField, 2> side;
  uint32_t side_blocks = 1;
  std::span<const std::byte> table;
};

// Throws Error when the type is no weight type of this backend.
WeightLayout weight_layout(formats::DType dtype);

// Bytes of `rows` rows of `cols` values in each plane, those of plane 1 without the table.
uint64_t data_bytes(const WeightLayout& layout, uint64_t rows, uint64_t cols);
uint64_t side_bytes(const WeightLayout& layout, uint64_t rows, uint64_t cols);

// Rows of which plane 1 has whole words, whatever their length: pieces of a weight have multiples.
inline constexpr uint64_t kPieceRows = 4;

// Vectors of 16 bytes in a row of a plain type.
uint32_t row_vectors(const WeightLayout& layout, uint32_t cols);

// Takes whole stored rows apart into both planes, which have their sizes above. Pure.
void split_planes(const WeightLayout& layout, std::span<const std::byte> stored, uint64_t rows,
                  uint64_t cols, std::span<std::byte> data, std::span<std::byte> side);

}  // namespace wisp::backend::webgpu
