// Tables that codecs read from the head of plane 1 (kernels/codec/).
#pragma once

#include <cstddef>
#include <span>

#include "formats/dtype.h"

namespace wisp::backend::webgpu {

// A type's table, of whole words; empty: it has none.
std::span<const std::byte> codec_table(formats::DType dtype);

}  // namespace wisp::backend::webgpu
