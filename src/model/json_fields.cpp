#include "model/json_fields.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/quoted.h"
#include "model/known_fields.h"

namespace wisp::model {

using nlohmann::json;

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= 40) return text;
  size_t end = 37;
  while ((static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // inside a character
  return text.substr(0, end) + "...";
}

void JsonFields::fail_expected(std::string_view key, std::string_view expected,
                               const json& found) const {
  fail("field '{}{}': expected {}, found {}", prefix_, key, expected, shown(found));
}

const json* JsonFields::find(std::string_view key) const {
  asked_.emplace(key);
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const JsonFields* JsonFields::find_object(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) fail_expected(key, "an object", *value);
  auto& fields = objects_[std::string(key)];
  if (!fields) fields = std::make_unique<JsonFields>(*value, fmt::format("{}{}.", prefix_, key));
  return fields.get();
}

std::string_view JsonFields::first_of(std::initializer_list<std::string_view> keys) const {
  std::string_view first;
  for (const std::string_view key : keys) {
    if (has(key) && first.empty()) first = key;
  }
  return first.empty() ? *keys.begin() : first;
}

bool JsonFields::has(std::string_view key) const { return find(key) != nullptr; }

std::optional<uint32_t> JsonFields::get_uint(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_number_unsigned() || value->get<uint64_t>() > UINT32_MAX) {
    fail_expected(key, "a whole number", *value);
  }
  return value->get<uint32_t>();
}

std::optional<double> JsonFields::get_number(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_number()) fail_expected(key, "a number", *value);
  return value->get<double>();
}

std::optional<bool> JsonFields::get_bool(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_boolean()) fail_expected(key, "true or false", *value);
  return value->get<bool>();
}

std::optional<std::string> JsonFields::get_string(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string()) fail_expected(key, "a string", *value);
  return value->get<std::string>();
}

std::vector<uint32_t> JsonFields::get_uints(std::string_view key) const {
  const json* list = find(key);
  std::vector<uint32_t> result;
  if (list == nullptr) return result;
  if (!list->is_array()) fail_expected(key, "a list", *list);
  for (const json& item : *list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > UINT32_MAX) {
      fail_expected(key, "whole numbers", item);
    }
    result.push_back(item.get<uint32_t>());
  }
  return result;
}

std::vector<double> JsonFields::get_numbers(std::string_view key) const {
  const json* list = find(key);
  std::vector<double> result;
  if (list == nullptr) return result;
  if (!list->is_array()) fail_expected(key, "a list of numbers", *list);
  for (const json& item : *list) {
    if (!item.is_number()) fail_expected(key, "numbers", item);
    result.push_back(item.get<double>());
  }
  return result;
}

std::vector<uint32_t> JsonFields::get_per_layer(std::string_view key, uint32_t num_layers,
                                                uint32_t usual) const {
  const json* value = find(key);
  if (value == nullptr || !value->is_array()) {
    return std::vector<uint32_t>(num_layers, get_uint(key).value_or(usual));
  }
  std::vector<uint32_t> result = get_uints(key);
  if (result.size() != num_layers) {
    fail("field '{}{}' has {} numbers, expected one for each of {} layers", prefix_, key,
         result.size(), num_layers);
  }
  return result;
}

std::vector<double> JsonFields::get_limits(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array() || value->size() != 2 || !(*value)[0].is_number()) {
    fail_expected(key, "two numbers", *value);
  }
  const json& last = (*value)[1];
  if (last.is_number()) return {(*value)[0].get<double>(), last.get<double>()};
  const bool infinite = last.is_null() || last == "inf" || last == "Infinity" ||
                        last == json{{"__float__", "Infinity"}};
  if (!infinite) fail_expected(key, "two numbers", *value);
  return {(*value)[0].get<double>(), std::numeric_limits<double>::infinity()};
}

uint32_t JsonFields::require_uint(std::string_view key) const {
  const std::optional<uint32_t> value = get_uint(key);
  if (!value) fail("field '{}{}' is missing", prefix_, key);
  return *value;
}

double JsonFields::require_number(std::string_view key) const {
  const std::optional<double> value = get_number(key);
  if (!value) fail("field '{}{}' is missing", prefix_, key);
  return *value;
}

void JsonFields::refuse_unread(std::string_view family) const {
  for (const auto& [key, value] : object_.items()) {
    if (asked_.contains(key)) continue;
    switch (unread_hf(key, value)) {
      case Unread::harmless:
        break;
      case Unread::refused:
        fail("field {}: {} is not supported", formats::in_quotes(prefix_ + key), shown(value));
      case Unread::unknown:
        fail("field {}: {} is not known for the family '{}', whose results it may change",
             formats::in_quotes(prefix_ + key), shown(value), family);
    }
  }
  for (const auto& [key, fields] : objects_) fields->refuse_unread(family);
}

}  // namespace wisp::model
