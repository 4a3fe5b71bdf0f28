// Names from files inside messages.
#pragma once

#include <string>
#include <string_view>

namespace wisp::formats {

// 'text' for a one-line message: control and non-ASCII bytes of broken UTF-8 become \xNN, and what
// exceeds 100 bytes is cut and marked "...".
std::string in_quotes(std::string_view text);

// Whether `text` is well-formed UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

}  // namespace wisp::formats
