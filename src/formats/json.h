// JSON from files, which nothing is known about: deep nesting is refused, since copying, printing
// and comparing such a value would take as much of the stack.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace wisp::formats {

struct JsonRules {
  int max_depth = 64;           // arrays and objects inside each other
  bool unique_names = false;    // whether a name used twice in an object is an error; else the last
                                // one counts
  bool python_numbers = false;  // whether Infinity, -Infinity and NaN, which Python writes and JSON
                                // lacks, are read, as the strings of those names
};

// The object that `text` holds. Json is nlohmann::json or nlohmann::ordered_json. Throws Error,
// whose message starts with `what`.
template <typename Json>
Json parse_json_object(std::string_view text, std::string_view what, JsonRules rules = {});

// The object in a file of at most 64 MiB. Throws Error naming it.
template <typename Json>
Json read_json_object(const std::filesystem::path& path, JsonRules rules = {});

}  // namespace wisp::formats
