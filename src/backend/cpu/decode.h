// Weight rows as floats.
#pragma once

#include <cstddef>

#include "formats/dtype.h"

namespace wisp::backend::cpu {

// Decodes n values (a multiple of the type's block) to exactly what formats' dequantize gives;
// to_half: then rounded to f16 values, saturating at +-65504.
void decode_row(formats::DType dtype, const std::byte* blocks, float* out, size_t n, bool to_half);

}  // namespace wisp::backend::cpu
