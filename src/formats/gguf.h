// GGUF, versions 2 and 3, little endian: reading from memory or files, and writing.
//
// Layout: "GGUF", u32 version, u64 tensor count, u64 key count; the key-value pairs; one info a
// tensor (name, dimensions innermost first, type id, offset); padding to general.alignment (32
// unless set); the tensor data, each tensor's offset counted from here and aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/metadata.h"
#include "formats/tensor.h"

namespace wisp::formats {

class OutputFile;

struct Gguf {
  uint32_t version = 0;
  uint64_t alignment = 0;
  Metadata metadata;
  std::vector<TensorView> tensors;  // in file order; `data` points into the parsed bytes
};

// Parses a whole file held in memory; nothing in it is trusted. Throws Error naming the key or
// tensor at fault. Only counts that the bytes can back are allocated.
Gguf parse_gguf(std::span<const std::byte> bytes);

// Maps a file, or, given the first of "<name>-00001-of-0000N.gguf", all N. Throws Error beginning
// with the path at fault.
MappedTensors open_gguf(const std::filesystem::path& path);

// A tensor to write. `data` is called once, in order, and gives tensor_bytes(dtype, shape) bytes
// that stay valid until the next tensor's `data` is called.
struct GgufTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<uint64_t> shape;  // outermost first, 1 to 4 dimensions
  std::function<std::span<const std::byte>()> data;
};

// Writes version 3 beside `path` and renames, so that `path` is whole or untouched. Numbers take
// the narrowest of u32, i32, u64, i64 (arrays: i32, i64) and of f32, f64 that holds them exactly.
// Alignment is the metadata's general.alignment, or 32. Throws Error.
void write_gguf(const std::filesystem::path& path, const Metadata& metadata,
                std::span<const GgufTensor> tensors);
// The same to a file that is open and empty; the caller commits it.
void write_gguf(OutputFile& file, const Metadata& metadata, std::span<const GgufTensor> tensors);

}  // namespace wisp::formats
