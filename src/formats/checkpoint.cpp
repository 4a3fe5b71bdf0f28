#include "formats/checkpoint.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "formats/gguf.h"
#include "formats/hf_quantized.h"
#include "formats/quoted.h"
#include "formats/safetensors.h"

namespace wisp::formats {

namespace {

namespace fs = std::filesystem;

constexpr char kExpected[] = "expected a .gguf file or a folder with config.json and *.safetensors";

// Files below `folder` with this extension, in order of their names.
std::vector<fs::path> files_with_extension(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == extension) files.push_back(entry->path());
  }
  if (error) fail("{}: cannot read the folder: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

[[noreturn]] void fail_without_weights(const fs::path& folder) {
  for (const char* extension : {".bin", ".pth", ".pt", ".onnx"}) {
    const auto files = files_with_extension(folder, extension);
    if (files.empty()) continue;
    fail("{}: has {}, but no *.safetensors: weights have to be converted to safetensors or GGUF",
         folder.string(), files.front().filename().string());
  }
  fail("{}: has no *.safetensors", folder.string());
}

// Every *.safetensors of the folder; a tensor may lie in one only.
MappedTensors open_all_shards(const std::vector<fs::path>& paths) {
  MappedTensors contents;
  for (const fs::path& path : paths) {
    MappedTensors part = open_safetensors(path);
    std::move(part.files.begin(), part.files.end(), std::back_inserter(contents.files));
    std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(contents.tensors));
  }
  return contents;
}

MappedTensors open_folder(const fs::path& folder) {
  if (!fs::exists(folder / "config.json")) {
    const auto ggufs = files_with_extension(folder, ".gguf");
    if (!ggufs.empty()) {
      fail("{}: has no config.json; to use {}, give its path", folder.string(),
           ggufs.front().filename().string());
    }
    fail("{}: has no config.json; {}", folder.string(), kExpected);
  }
  const fs::path index = folder / "model.safetensors.index.json";
  const fs::path single = folder / "model.safetensors";
  if (fs::exists(index)) return open_safetensors_index(index);
  if (fs::exists(single)) return open_safetensors(single);
  const auto files = files_with_extension(folder, ".safetensors");
  if (files.empty()) fail_without_weights(folder);
  return open_all_shards(files);
}

bool starts_with_gguf(const fs::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  constexpr std::array kMagic = {std::byte{'G'}, std::byte{'G'}, std::byte{'U'}, std::byte{'F'}};
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

MappedTensors open_file(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".gguf" || starts_with_gguf(path)) return open_gguf(path);
  if (extension == ".safetensors" || extension == ".json") {
    fail("{}: give the folder that holds config.json and the *.safetensors", path.string());
  }
  for (const char* other : {".bin", ".pth", ".pt", ".ckpt", ".onnx", ".npz", ".h5"}) {
    if (extension != other) continue;
    fail("{}: {} files are not supported, the weights have to be converted to safetensors or GGUF",
         path.string(), other);
  }
  fail("{}: not a GGUF file; {}", path.string(), kExpected);
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    fail("{}: no such file or folder", path.string());
  }
  if (error) fail("{}: {}", path.string(), error.message());
  if (fs::is_directory(status)) {
    MappedTensors contents = open_folder(path);
    join_quantized_tensors(path, contents.tensors);
    return {CheckpointKind::huggingface, path, path, std::move(contents)};
  }
  fs::path folder = path.parent_path();
  if (folder.empty()) folder = ".";
  return {CheckpointKind::gguf, path, std::move(folder), open_file(path)};
}

Checkpoint::Checkpoint(CheckpointKind kind, fs::path path, fs::path folder, MappedTensors contents)
    : kind_(kind),
      path_(std::move(path)),
      folder_(std::move(folder)),
      contents_(std::move(contents)) {
  index_.reserve(contents_.tensors.size());
  for (size_t i = 0; i < contents_.tensors.size(); ++i) {
    const TensorView& tensor = contents_.tensors[i];
    if (!index_.emplace(tensor.name, i).second) {
      fail("{}: tensor {} is in two files", path_.string(), in_quotes(tensor.name));
    }
    total_bytes_ =
        checked_add(total_bytes_, tensor_bytes(tensor.dtype, tensor.shape), "bytes of all tensors");
  }
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &contents_.tensors[found->second];
}

const TensorView& Checkpoint::require(std::string_view name) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) fail("{}: no tensor {}", path_.string(), in_quotes(name));
  return *tensor;
}

}  // namespace wisp::formats
