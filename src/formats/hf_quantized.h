// Quantised weights in folders of Hugging Face: GPTQ, AWQ, compressed-tensors, fp8 and MXFP4, whose
// matrices are stored in several tensors.
#pragma once

#include <filesystem>
#include <vector>

#include "formats/tensor.h"

namespace wisp::formats {

// Puts a tensor NAME.weight of a block type in the place of each matrix's parts, where config.json
// in `folder` has a quantization_config. Reads no weights. Throws Error for methods and variants
// that are not supported, and for parts that are missing or do not fit.
void join_quantized_tensors(const std::filesystem::path& folder, std::vector<TensorView>& tensors);

}  // namespace wisp::formats
