// Reading a Hugging Face config.json, in today's form (rope_parameters, dtype) and in the older one
// (rope_theta, rope_scaling, torch_dtype).
#pragma once

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace wisp::model {

// Typed access to a JSON object; errors name the field, what was expected and what was found.
class JsonFields {
 public:
  explicit JsonFields(const nlohmann::json& object) : object_(object) {}

  bool has(std::string_view key) const;  // present and not null
  std::optional<uint32_t> get_uint(std::string_view key) const;
  std::optional<double> get_number(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;
  std::vector<uint32_t> get_uints(std::string_view key) const;  // empty: absent
  std::vector<double> get_numbers(std::string_view key) const;  // empty: absent
  // A number for each layer: a list has them, one number holds for all, none is `usual`.
  std::vector<uint32_t> get_per_layer(std::string_view key, uint32_t num_layers,
                                      uint32_t usual) const;
  uint32_t require_uint(std::string_view key) const;
  double require_number(std::string_view key) const;
  const nlohmann::json* find(std::string_view key) const;  // nullptr: absent or null
  // The first of these names that is present, else the first one: for fields that changed names.
  std::string_view first_of(std::initializer_list<std::string_view> keys) const;

 private:
  const nlohmann::json& object_;
};

// The parsed file. Throws Error for anything but one JSON object.
nlohmann::json read_json(const std::filesystem::path& path);

// Fills what all decoder families share; a family's hook adds the rest. Throws Error naming the
// field.
ModelConfig read_hf_config(const JsonFields& fields);

// per_layer_config: the sizes that single layers have otherwise, by their numbers.
void read_hf_single_layers(const JsonFields& fields, ModelConfig& config);

// How many experts there are, and of what size, for families that have them in every layer; the
// family adds how they are chosen.
void read_hf_experts(const JsonFields& fields, ModelConfig& config);

}  // namespace wisp::model
