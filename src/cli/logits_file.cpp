#include "cli/logits_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace wisp::cli {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

LogitsFile::LogitsFile(fs::path path, const std::vector<Tensor>& tensors, uint32_t vocab_size)
    : path_(std::move(path)),
      temporary_(path_),
      row_bytes_(uint64_t{vocab_size} * sizeof(float)),
      tensors_(tensors) {
  std::error_code ignored;
  if (fs::exists(path_, ignored) && !fs::is_regular_file(path_, ignored)) {
    fail("{}: cannot write: not a regular file", path_.string());
  }
  nlohmann::json header = nlohmann::json::object();
  uint64_t size = 0;
  for (const Tensor& tensor : tensors_) {
    offsets_.push_back(size);
    size = checked_add(size, checked_mul(tensor.rows, row_bytes_, "logits"), "logits");
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", {tensor.rows, vocab_size}},
                           {"data_offsets", {offsets_.back(), size}}};
  }
  std::string text = header.dump();
  text.resize(static_cast<size_t>(round_up(text.size(), 8)), ' ');
  const auto header_bytes = static_cast<uint64_t>(text.size());
  const uint64_t data = sizeof(header_bytes) + header_bytes;
  for (uint64_t& offset : offsets_) offset += data;

  temporary_ += fmt::format(".{}.tmp", getpid());
  remove_on_signal_.emplace(temporary_.string());
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) fail_to_write();
  try {
    if (ftruncate(file_, checked_cast<off_t>(checked_add(data, size, "logits"), "logits")) != 0) {
      fail_to_write();
    }
    write_at(0, std::as_bytes(std::span(&header_bytes, 1)));
    write_at(sizeof(header_bytes), std::as_bytes(std::span(text)));
  } catch (...) {  // no destructor runs for what was not constructed
    close(file_);
    fs::remove(temporary_, ignored);
    throw;
  }
}

LogitsFile::~LogitsFile() {
  if (file_ >= 0) close(file_);
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

void LogitsFile::write_row(size_t tensor, uint64_t row, std::span<const float> logits) {
  ensure(tensor < tensors_.size() && row < tensors_[tensor].rows,
         "logits: a row that is not there");
  ensure(logits.size_bytes() == row_bytes_, "logits: a row of the wrong size");
  write_at(offsets_[tensor] + row * row_bytes_, std::as_bytes(logits));
}

void LogitsFile::commit() {
  const int file = std::exchange(file_, -1);
  if (close(file) != 0) fail_to_write();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_to_write();
  temporary_.clear();
  remove_on_signal_.reset();
}

void LogitsFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_to_write();
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void LogitsFile::fail_to_write() const {
  fail("{}: cannot write: {}", path_.string(), std::strerror(errno));
}

}  // namespace wisp::cli
