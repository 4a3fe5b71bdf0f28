// Which type each tensor of a quantised GGUF file gets: the mixes that llama.cpp's quantize knows,
// so that files of one name have one quality.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/dtype.h"

namespace wisp::model {

struct QuantizeMix {
  std::string_view name;  // "Q4_K_M"
  formats::DType base;    // of most matrices
  uint32_t file_type;     // general.file_type
};

std::span<const QuantizeMix> quantize_mixes();
// In any case of letters; nullptr for no mix.
const QuantizeMix* find_quantize_mix(std::string_view name);

// The type of each tensor of a GGUF file, in its order. Vectors, norms, routers, convolutions and
// what else is small keeps its type. Where a row is no whole number of blocks a type of shorter
// blocks is taken, or F16. Throws Error when the metadata has no architecture.
std::vector<formats::DType> quantized_types(const formats::Checkpoint& checkpoint,
                                            const QuantizeMix& mix, bool with_importance);

}  // namespace wisp::model
