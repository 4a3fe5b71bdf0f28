// Matrices of small integers or 8-bit floats with scales, in whatever form a checkpoint stores
// them, as rows of blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/dtype.h"

namespace wisp::formats {

// w[r][c] = scale * (code - zero), with the scale and zero of r and c / group.
struct GroupedMatrix {
  uint64_t rows = 0;
  uint64_t cols = 0;
  uint64_t group = 0;          // divides cols
  std::vector<uint8_t> codes;  // [rows, cols]
  std::vector<float> scales;   // [rows, cols / group]
  std::vector<float> zeros;    // the same
};

// The type of blocks that hold codes of `bits` (4 or 8) in groups; F32 where no block fits.
DType grouped_type(uint32_t bits, uint64_t cols, uint64_t group);
// Rows of such blocks. Scales are rounded to f16, except for F32. Throws Error where a scale is
// beyond f16.
std::vector<std::byte> grouped_rows(const GroupedMatrix& matrix, DType dtype);

// The same of E4M3 floats: w = scale * code.
DType float8_type(uint64_t cols, uint64_t group);
std::vector<std::byte> float8_rows(const GroupedMatrix& matrix, DType dtype);

}  // namespace wisp::formats
