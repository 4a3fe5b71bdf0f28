// A model family as data. Adding one: a file in archs/ and its line in archs/all.cpp
// (CONTRIBUTING.md has the recipe).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/config_gguf.h"
#include "model/config_hf.h"
#include "model/tensor_map.h"

namespace wisp::model {

struct Arch {
  std::string_view name;                             // what wisp calls the family
  std::vector<std::string_view> hf_model_types;      // config.json's model_type
  std::vector<std::string_view> gguf_architectures;  // general.architecture
  // Tensors that are not called as tensor_map.cpp has them.
  std::vector<RoleName> hf_names = {};
  std::vector<RoleName> gguf_names = {};
  bool attention = true;       // false: no layer attends, and nothing says how many heads there are
  bool windows = true;         // config.json's sliding_window means something in this family
  bool single_layers = false;  // likewise per_layer_config
  // A JSON object of what config.json leaves out where it has the usual value.
  std::string_view hf_defaults = "{}";
  // What the family's config says beyond, or otherwise than, the shared reader; nullptr: nothing.
  void (*from_hf)(const JsonFields& fields, ModelConfig& config) = nullptr;
  void (*from_gguf)(const GgufFields& fields, ModelConfig& config) = nullptr;
};

// All families, in a fixed order.
std::span<const Arch* const> all_archs();

// The family of a config that was read.
const Arch& arch_named(std::string_view family);

// Throws Error listing the known names.
const Arch& arch_for_hf(std::string_view model_type);
const Arch& arch_for_gguf(std::string_view architecture);

}  // namespace wisp::model
