// Files: read-only memory maps, whole reads, atomic writes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace wisp {

// A whole file mapped read-only. Movable; the bytes stay at one address until destruction. A file
// that another process truncates while mapped is outside the contract.
class MappedFile {
 public:
  // Throws Error when the file cannot be opened or mapped. An empty file gives an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The whole file as text. Throws Error when it cannot be read or is larger than `max_bytes`.
std::string read_text(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);

// Writes `bytes` to a temporary file beside `path` and renames it, so that `path` is whole or
// untouched. Throws Error.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace wisp
