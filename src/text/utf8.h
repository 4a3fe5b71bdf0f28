// Bytes to UTF-8 text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wisp::text {

// Appends `bytes` to `out` and returns how many were used. What is not UTF-8 becomes U+FFFD, one
// for each longest start of a character (Unicode's "maximal subpart", as Python's errors="replace"
// does it). Bytes at the end that may be the start of a character are left, or replaced when
// `last`.
size_t append_utf8(std::string_view bytes, bool last, std::string& out);

}  // namespace wisp::text
