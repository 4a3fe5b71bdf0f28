// A cursor over bytes that are not trusted.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/error.h"

namespace wisp::formats {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

// Every read throws Error naming `what`, the place and the sizes when the bytes run out.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  std::span<const std::byte> take(uint64_t size, std::string_view what) {
    if (size > remaining()) {
      fail("{} at byte {}: expected {} bytes, found {}", what, position_, size, remaining());
    }
    const auto result = bytes_.subspan(position_, static_cast<size_t>(size));
    position_ += static_cast<size_t>(size);
    return result;
  }

  template <typename T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  // A u64 length, then that many bytes. The view points into the bytes.
  std::string_view string(std::string_view what) {
    const auto length = number<uint64_t>(what);
    const auto text = take(length, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace wisp::formats
