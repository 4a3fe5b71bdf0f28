// The q8 input of a Linear, spread for integer dot products.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wisp::backend::cpu {

// Column c: quants as int16 [width], d [blocks] and d * sum of quants [blocks]; the latter two are
// padded with zeros to a multiple of 8.
struct Q8Columns {
  const int16_t* quants = nullptr;
  const float* scales = nullptr;
  const float* sums = nullptr;
  size_t width = 0;
  size_t padded_blocks = 0;
  size_t count = 0;
};

}  // namespace wisp::backend::cpu
