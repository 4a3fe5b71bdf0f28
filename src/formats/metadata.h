// Key-value metadata of a checkpoint, as GGUF stores it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace wisp::formats {

// Integers of every width become int64 (uint64 above its range), floats double; arrays keep one
// element type.
using MetadataValue =
    std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<int64_t>,
                 std::vector<double>, std::vector<std::string>, std::vector<bool>>;

// Typed access: a missing key gives nullopt, a key of another type throws Error naming the key, the
// expected and the found type. An integer may be asked for as a float, not the other way round.
class Metadata {
 public:
  void set(std::string key, MetadataValue value);
  bool contains(std::string_view key) const;
  const std::map<std::string, MetadataValue, std::less<>>& values() const { return values_; }

  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<int64_t> get_int(std::string_view key) const;
  std::optional<double> get_float(std::string_view key) const;
  // The views stay valid while the Metadata lives.
  const std::string* find_string(std::string_view key) const;
  const std::vector<std::string>* find_strings(std::string_view key) const;
  const std::vector<int64_t>* find_ints(std::string_view key) const;
  const std::vector<double>* find_floats(std::string_view key) const;
  const std::vector<bool>* find_bools(std::string_view key) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
};

}  // namespace wisp::formats
