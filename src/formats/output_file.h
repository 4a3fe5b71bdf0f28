// Files written piece by piece that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

namespace wisp::formats {

// Writes to a temporary file beside `path`; commit() renames it, destruction without commit removes
// it. Every failure throws Error naming `path`, as does a `path` that is there and no regular file.
class OutputFile {
 public:
  // The temporary file that is to become `path`, for those who remove it when the process ends.
  static std::filesystem::path temporary_of(const std::filesystem::path& path);

  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Zeros up to the next multiple of `alignment`.
  void pad(uint64_t alignment);
  void commit();

 private:
  [[noreturn]] void fail_to_write(std::string_view reason) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::ofstream out_;
  uint64_t position_ = 0;
};

}  // namespace wisp::formats
