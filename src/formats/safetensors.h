// Safetensors: reading from memory or files, and writing.
//
// Layout: u64 header length; a JSON object of that length, name -> {dtype, shape, data_offsets:
// [begin, end)}, with an optional "__metadata__" of strings; the data, offsets counted from its
// start. Nothing aligns the tensors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "formats/tensor.h"

namespace wisp::formats {

// Parses a whole file held in memory; nothing in it is trusted. The tensors are in order of their
// data and point into `bytes`. Throws Error naming the tensor at fault.
std::vector<TensorView> parse_safetensors(std::span<const std::byte> bytes);

// Maps one file. Throws Error beginning with its path.
MappedTensors open_safetensors(const std::filesystem::path& path);

// Maps the shards that an index ("model.safetensors.index.json") lists beside itself; every tensor
// must lie where the index says. Throws Error beginning with the path at fault.
MappedTensors open_safetensors_index(const std::filesystem::path& index_path);

// Writes the tensors, those with wider elements first, so that each is aligned to its element. The
// file is whole or untouched. Throws Error, also for a type that safetensors has not or a name used
// twice.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors);

}  // namespace wisp::formats
