// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace wisp::cli {

std::string bytes_text(uint64_t bytes);    // "86.79 MiB"
std::string count_text(uint64_t count);    // "134.52 M"
std::string rate_text(double per_second);  // "88.1": three digits or whole numbers

}  // namespace wisp::cli
