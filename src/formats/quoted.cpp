#include "formats/quoted.h"

#include <fmt/format.h>

#include <cstdint>

namespace wisp::formats {

namespace {

// Bytes of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // The second byte rules out overlong forms, surrogates and code points above 0x10ffff.
  const uint8_t second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMaxBytes = 100;
  std::string result = "'";
  while (!text.empty()) {
    if (result.size() > kMaxBytes) return result + "...'";
    const size_t length = sequence_length(text);
    const auto byte = static_cast<uint8_t>(text[0]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
    } else {
      result += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return result + "'";
}

}  // namespace wisp::formats
