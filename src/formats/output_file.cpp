#include "formats/output_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace wisp::formats {

std::filesystem::path OutputFile::temporary_of(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += fmt::format(".{}.tmp", getpid());
  return temporary;
}

OutputFile::OutputFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(temporary_of(path_)) {
  std::error_code ignored;
  if (std::filesystem::exists(path_, ignored) &&
      !std::filesystem::is_regular_file(path_, ignored)) {
    fail_to_write("not a regular file");
  }
  out_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!out_) fail_to_write(std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  out_.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!out_) fail_to_write(std::strerror(errno));
  position_ += bytes.size();
}

void OutputFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void OutputFile::pad(uint64_t alignment) {
  static constexpr std::byte kZeros[256] = {};
  uint64_t missing = round_up(position_, alignment) - position_;
  while (missing > 0) {
    const uint64_t piece = std::min<uint64_t>(missing, sizeof(kZeros));
    write(std::span(kZeros).first(piece));
    missing -= piece;
  }
}

void OutputFile::commit() {
  out_.close();
  if (!out_) fail_to_write(std::strerror(errno));
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) fail_to_write(error.message());
  temporary_.clear();
}

void OutputFile::fail_to_write(std::string_view reason) const {
  fail("{}: cannot write: {}", path_.string(), reason);
}

}  // namespace wisp::formats
