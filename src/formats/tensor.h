// A named tensor inside a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/dtype.h"
#include "formats/metadata.h"

namespace wisp::formats {

// Does not own the bytes, but where no file holds them as they are: then `data` is empty and
// `make_bytes` makes them (any thread; throws Error). `shape` is row-major, outermost dimension
// first: a weight matrix is [rows, cols] whichever format it came from, and rows are contiguous.
// `data` holds exactly tensor_bytes(dtype, shape) bytes at any address: safetensors does not align,
// so read values with memcpy or the dtype's dequantize, never through a cast pointer.
struct TensorView {
  std::string name;
  DType dtype = DType::F32;
  std::vector<uint64_t> shape;
  std::span<const std::byte> data;
  std::function<std::vector<std::byte>()> make_bytes;
};

// What the files of a model hold. The tensors point into `files`, whose bytes keep their address
// when this is moved.
struct MappedTensors {
  std::vector<MappedFile> files;
  Metadata metadata;
  std::vector<TensorView> tensors;
};

// "[2, 3]".
std::string shape_text(std::span<const uint64_t> shape);

// Throws Error naming two tensors whose data overlap. All data must lie in one array.
void require_disjoint(std::span<const TensorView> tensors);

// All values of a tensor as f32. Throws Error naming the tensor when its type has no float values.
std::vector<float> tensor_to_f32(const TensorView& tensor);

}  // namespace wisp::formats
