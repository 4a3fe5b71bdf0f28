// The q8 input of a Linear, spread for integer dot products.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wisp::backend::cpu {

struct Q8Columns {
  const int16_t* quants = nullptr;  // [count, width]
  const float* factors = nullptr;   // [count, blocks, 4]: d, d * sum of the quants, of halves
  size_t width = 0;
  size_t count = 0;

  size_t blocks() const { return width / 32; }
};

}  // namespace wisp::backend::cpu
