// Reading a Hugging Face config.json, in today's form (rope_parameters, dtype) and in the older one
// (rope_theta, rope_scaling, torch_dtype).
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "model/config.h"
#include "model/json_fields.h"

namespace wisp::model {

// The parsed file. Throws Error for anything but one JSON object.
nlohmann::json read_json(const std::filesystem::path& path);

// Fills what all decoder families share, without `attention` those that do not attend; a family's
// hook adds the rest. Throws Error naming the field.
ModelConfig read_hf_config(const JsonFields& fields, bool attention = true);

// per_layer_config: the sizes that single layers have otherwise, by their numbers.
void read_hf_single_layers(const JsonFields& fields, ModelConfig& config);

// How many experts there are, and of what size, for families that have them in every layer; the
// family adds how they are chosen.
void read_hf_experts(const JsonFields& fields, ModelConfig& config);

}  // namespace wisp::model
