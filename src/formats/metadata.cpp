#include "formats/metadata.h"

#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace wisp::formats {

namespace {

struct TypeName {
  std::string_view operator()(bool) const { return "a bool"; }
  std::string_view operator()(int64_t) const { return "an integer"; }
  std::string_view operator()(uint64_t) const { return "an integer above 2^63"; }
  std::string_view operator()(double) const { return "a float"; }
  std::string_view operator()(const std::string&) const { return "a string"; }
  std::string_view operator()(const std::vector<int64_t>&) const { return "an array of integers"; }
  std::string_view operator()(const std::vector<double>&) const { return "an array of floats"; }
  std::string_view operator()(const std::vector<std::string>&) const {
    return "an array of strings";
  }
  std::string_view operator()(const std::vector<bool>&) const { return "an array of bools"; }
};

[[noreturn]] void wrong_type(std::string_view key, std::string_view expected,
                             const MetadataValue& found) {
  fail("metadata '{}': expected {}, found {}", key, expected, std::visit(TypeName(), found));
}

// nullptr when the key is missing.
template <typename T>
const T* find(const Metadata& metadata, std::string_view key, std::string_view expected) {
  const auto found = metadata.values().find(key);
  if (found == metadata.values().end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) wrong_type(key, expected, found->second);
  return value;
}

}  // namespace

void Metadata::set(std::string key, MetadataValue value) {
  values_.insert_or_assign(std::move(key), std::move(value));
}

bool Metadata::contains(std::string_view key) const { return values_.contains(key); }

std::optional<bool> Metadata::get_bool(std::string_view key) const {
  const bool* value = find<bool>(*this, key, "a bool");
  if (value == nullptr) return std::nullopt;
  return *value;
}

std::optional<int64_t> Metadata::get_int(std::string_view key) const {
  const int64_t* value = find<int64_t>(*this, key, "an integer below 2^63");
  if (value == nullptr) return std::nullopt;
  return *value;
}

std::optional<double> Metadata::get_float(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  if (const auto* value = std::get_if<double>(&found->second)) return *value;
  if (const auto* value = std::get_if<int64_t>(&found->second)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&found->second)) return static_cast<double>(*value);
  wrong_type(key, "a number", found->second);
}

const std::string* Metadata::find_string(std::string_view key) const {
  return find<std::string>(*this, key, "a string");
}

const std::vector<std::string>* Metadata::find_strings(std::string_view key) const {
  return find<std::vector<std::string>>(*this, key, "an array of strings");
}

const std::vector<int64_t>* Metadata::find_ints(std::string_view key) const {
  return find<std::vector<int64_t>>(*this, key, "an array of integers");
}

const std::vector<double>* Metadata::find_floats(std::string_view key) const {
  return find<std::vector<double>>(*this, key, "an array of floats");
}

const std::vector<bool>* Metadata::find_bools(std::string_view key) const {
  return find<std::vector<bool>>(*this, key, "an array of bools");
}

}  // namespace wisp::formats
