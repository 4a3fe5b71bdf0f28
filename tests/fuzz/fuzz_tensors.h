// What the fuzzers of tensor files share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "formats/tensor.h"

namespace wisp::formats {

// Runs `parse`, then reads every tensor it gives. Only a one-line Error may leave `parse`.
inline void fuzz_parse(const std::function<std::vector<TensorView>()>& parse) {
  std::vector<TensorView> tensors;
  try {
    tensors = parse();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.empty() || message.find('\n') != std::string_view::npos) __builtin_trap();
    return;
  }
  for (const TensorView& tensor : tensors) {
    if (tensor.data.size() != tensor_bytes(tensor.dtype, tensor.shape)) __builtin_trap();
    if (dtype_info(tensor.dtype).dequantize != nullptr) tensor_to_f32(tensor);
  }
}

}  // namespace wisp::formats
