// Token ids on the command line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::cli {

// `1,2,3`, or `@file` with ids between commas or white space. Throws UsageError for text that is
// not a list of numbers, Error for a file that is not, for an empty list, and for a number that no
// vocabulary has.
std::vector<int32_t> parse_tokens(const std::string& argument);

// "1,2,3".
std::string tokens_text(std::span<const int32_t> tokens);

}  // namespace wisp::cli
