// One view of a model's files, whichever format they have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/metadata.h"
#include "formats/tensor.h"

namespace wisp::formats {

enum class CheckpointKind { gguf, huggingface };

// Keeps the files mapped while it lives; movable. Immutable after open, so any thread may read.
class Checkpoint {
 public:
  // `path` is a .gguf file (the first one of a split model), or a folder with config.json and
  // *.safetensors. Throws one clear Error for anything else and for broken files.
  static Checkpoint open(const std::filesystem::path& path);

  CheckpointKind kind() const { return kind_; }
  const std::filesystem::path& path() const { return path_; }      // as given to open
  const std::filesystem::path& folder() const { return folder_; }  // holds the files
  const Metadata& metadata() const { return contents_.metadata; }  // empty for huggingface
  std::span<const TensorView> tensors() const { return contents_.tensors; }
  std::span<const MappedFile> files() const { return contents_.files; }
  uint64_t total_bytes() const { return total_bytes_; }  // of all tensors' data

  // nullptr when there is no such tensor. The view stays valid while the Checkpoint lives, moved or
  // not.
  const TensorView* find(std::string_view name) const;
  // Throws Error naming the path and the tensor when there is no such tensor.
  const TensorView& require(std::string_view name) const;

 private:
  Checkpoint(CheckpointKind kind, std::filesystem::path path, std::filesystem::path folder,
             MappedTensors contents);

  CheckpointKind kind_;
  std::filesystem::path path_;
  std::filesystem::path folder_;
  MappedTensors contents_;
  uint64_t total_bytes_ = 0;
  std::unordered_map<std::string_view, size_t> index_;  // keys point at contents_.tensors' names
};

}  // namespace wisp::formats
