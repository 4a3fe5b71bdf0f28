// Encoders: rows of f32 to blocks, with little squared error. quantize_fit.h tells how.
#pragma once

#include <cstddef>
#include <span>

#include "formats/dtype.h"

namespace wisp::formats {

// Whether encode_row writes the type: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K,
// Q6_K, IQ4_NL, IQ4_XS.
bool can_encode(DType dtype);

// Writes `row`, whole blocks of the type, to `blocks`, which has room for row_bytes(dtype,
// columns). `importance` is empty or has a weight for each column's squared error, finite and not
// negative. Throws Error that names the column of a value which is not finite, or too large for F16
// itself; a scale too large for f16 becomes its largest value. Any thread.
void encode_row(DType dtype, std::span<const float> row, std::span<const float> importance,
                std::byte* blocks);

}  // namespace wisp::formats
