// A safetensors file of f32 logits whose rows come in any order: nothing large stays in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/remove_on_signal.h"

namespace wisp::cli {

// Writes to a temporary file beside `path`; commit() renames it, destruction without commit, or a
// signal that ends the process, removes it. Every failure throws Error naming `path`.
class LogitsFile {
 public:
  struct Tensor {
    std::string name;
    uint64_t rows = 0;
  };

  // Tensors of shape [rows, vocab_size], at most 2^63 bytes in all. Refuses to replace what is not
  // a regular file.
  LogitsFile(std::filesystem::path path, const std::vector<Tensor>& tensors, uint32_t vocab_size);
  ~LogitsFile();
  LogitsFile(const LogitsFile&) = delete;
  LogitsFile& operator=(const LogitsFile&) = delete;

  // `logits` has vocab_size values; every row is written once.
  void write_row(size_t tensor, uint64_t row, std::span<const float> logits);
  void commit();

 private:
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  [[noreturn]] void fail_to_write() const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::optional<RemoveOnSignal> remove_on_signal_;
  int file_ = -1;
  uint64_t row_bytes_;
  std::vector<Tensor> tensors_;
  std::vector<uint64_t> offsets_;  // of each tensor's data in the file
};

}  // namespace wisp::cli
