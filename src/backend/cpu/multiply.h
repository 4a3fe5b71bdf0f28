// Rows of a matrix times columns: what Linear and ExpertLinear share.
#pragma once

#include <cstddef>

#include "backend/cpu/context.h"
#include "backend/cpu/linear_out.h"
#include "backend/cpu/q8_columns.h"

namespace wisp::backend::cpu {

// Rows that multiply_floats decodes at once.
size_t float_tile_rows(uint32_t cols);

// Rows [first, first + rows), at most a tile, times `columns` rows of x, [columns, cols].
// `to_half` rounds the weights to halves; `scratch` takes the decoded rows.
void multiply_floats(const WeightView& weight, size_t first, size_t rows, bool to_half,
                     const float* x, size_t columns, const LinearOut& out, Buffer& scratch);

// n values rounded to halves.
void round_to_halves(const float* x, float* out, size_t n);

// Rows [begin, end) times the columns of x.
void multiply_q8(const WeightView& weight, size_t begin, size_t end, const Q8Columns& x,
                 const LinearOut& out);

// `width` elements of a q8 row from element `first` on, a multiple of 32, into the place of one
// column of Q8Columns; the row has `row_width` elements.
void spread_q8(const std::byte* row, size_t row_width, size_t first, size_t width, int16_t* quants,
               float* factors);

}  // namespace wisp::backend::cpu
