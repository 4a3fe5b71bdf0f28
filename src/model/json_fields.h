// Typed access to a JSON object of unknown origin.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::model {

// Errors name the field, what was expected and what was found. Which fields were asked for is
// noted, so that those that nobody knows can be refused.
class JsonFields {
 public:
  // `object` must outlive this. `prefix` goes before the names in errors, as in "rope_scaling.".
  explicit JsonFields(const nlohmann::json& object, std::string prefix = "")
      : object_(object), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const;  // present and not null
  std::optional<uint32_t> get_uint(std::string_view key) const;
  std::optional<double> get_number(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;
  std::vector<uint32_t> get_uints(std::string_view key) const;  // empty: absent
  std::vector<double> get_numbers(std::string_view key) const;  // empty: absent
  // Two numbers, of which the second may be infinite: null, or an object or a text that says so;
  // empty: absent.
  std::vector<double> get_limits(std::string_view key) const;
  // A number for each layer: a list has them, one number holds for all, none is `usual`.
  std::vector<uint32_t> get_per_layer(std::string_view key, uint32_t num_layers,
                                      uint32_t usual) const;
  uint32_t require_uint(std::string_view key) const;
  double require_number(std::string_view key) const;
  const nlohmann::json* find(std::string_view key) const;  // nullptr: absent or null
  // The fields of an object inside; nullptr: absent or null. Lives as long as this.
  const JsonFields* find_object(std::string_view key) const;
  // The first of these names that is present, else the first one: for fields that changed names.
  // All of them count as asked for.
  std::string_view first_of(std::initializer_list<std::string_view> keys) const;

  // Counts fields as asked for that have no meaning beside what others say.
  void pass_over(std::initializer_list<std::string_view> keys) const {
    asked_.insert(keys.begin(), keys.end());
  }

  // Throws Error naming a field, here or in an object inside that was asked for, that nobody asked
  // for and that may change the forward (see known_fields.h).
  void refuse_unread(std::string_view family) const;

 private:
  [[noreturn]] void fail_expected(std::string_view key, std::string_view expected,
                                  const nlohmann::json& found) const;

  const nlohmann::json& object_;
  std::string prefix_;
  // Reading notes what was read.
  mutable std::set<std::string, std::less<>> asked_;
  mutable std::map<std::string, std::unique_ptr<JsonFields>, std::less<>> objects_;
};

// A value as errors show it, at most 40 characters.
std::string shown(const nlohmann::json& value);

}  // namespace wisp::model
