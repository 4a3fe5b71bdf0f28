#include "model/config_gguf.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "formats/quoted.h"
#include "model/known_fields.h"

namespace wisp::model {
namespace {

// A number that some writers store as 0 where the model has none.
std::optional<double> get_nonzero(const GgufFields& fields, std::string_view key) {
  const std::optional<double> value = fields.get_number(key);
  return value == 0.0 ? std::nullopt : value;
}

// A factor without a type is linear scaling; scale_linear is the older name of the factor.
void read_scaling(const GgufFields& fields, RopeConfig& rope) {
  const std::optional<double> older = get_nonzero(fields, "rope.scale_linear");
  std::optional<double> factor = get_nonzero(fields, "rope.scaling.factor");
  if (!factor) factor = older;
  rope.factor = factor.value_or(1.0);
  const std::string* type = fields.find_string("rope.scaling.type");
  if (type == nullptr || *type == "linear") {
    rope.scaling = factor ? RopeScaling::linear : RopeScaling::none;
  } else if (*type == "yarn") {
    rope.scaling = RopeScaling::yarn;
  } else if (*type == "longrope") {
    rope.scaling = RopeScaling::longrope;
  } else if (*type != "none") {
    fail("{}.rope.scaling.type: '{}' is not supported", fields.arch(), *type);
  }
  // Written for longrope, whatever the type says.
  const std::optional<double> amplitude = get_nonzero(fields, "rope.scaling.attn_factor");
  if (!amplitude || *amplitude == 1.0) return;
  if (rope.scaling == RopeScaling::yarn) {
    fail("{}.rope.scaling.attn_factor: {} is not supported", fields.arch(), *amplitude);
  }
  rope.attention_factor = amplitude;
}

void read_rope(const GgufFields& fields, uint32_t head_dim, ModelConfig& c) {
  c.rope.theta = fields.get_number("rope.freq_base").value_or(10000.0);
  c.rope.rotary_dim = fields.get_uint("rope.dimension_count").value_or(head_dim);
  c.rope.sections = fields.get_uints("rope.dimension_sections");
  if (std::ranges::all_of(c.rope.sections, [](uint32_t pairs) { return pairs == 0; })) {
    c.rope.sections.clear();
  }
  // A fourth axis that no pair turns by.
  if (c.rope.sections.size() == 4 && c.rope.sections[3] == 0) c.rope.sections.pop_back();
  read_scaling(fields, c.rope);
  c.rope.original_context =
      fields.get_uint("rope.scaling.original_context_length").value_or(c.max_position_embeddings);
  c.rope.beta_fast = fields.get_number("rope.scaling.yarn_beta_fast").value_or(c.rope.beta_fast);
  c.rope.beta_slow = fields.get_number("rope.scaling.yarn_beta_slow").value_or(c.rope.beta_slow);
  // The converter stores attention_factor here. llama.cpp's own writer always writes 1, beside an
  // ext_factor below 0 for "not set": the factor is to be computed then.
  const std::optional<double> amplitude = fields.get_number("rope.scaling.yarn_attn_factor");
  const bool set = fields.get_number("rope.scaling.yarn_ext_factor").value_or(1.0) >= 0.0;
  if (c.rope.scaling == RopeScaling::yarn && set) c.rope.attention_factor = amplitude;
}

}  // namespace

std::string GgufFields::full(std::string_view key) const {
  return fmt::format("{}.{}", arch_, key);
}

std::string GgufFields::asked(std::string_view key) const {
  return *asked_.insert(full(key)).first;
}

std::optional<uint32_t> GgufFields::get_uint(std::string_view key) const {
  const std::optional<int64_t> value = metadata_.get_int(asked(key));
  if (!value) return {};
  return checked_cast<uint32_t>(*value, full(key));
}

std::optional<double> GgufFields::get_number(std::string_view key) const {
  return metadata_.get_float(asked(key));
}

std::optional<bool> GgufFields::get_bool(std::string_view key) const {
  return metadata_.get_bool(asked(key));
}

const std::string* GgufFields::find_string(std::string_view key) const {
  return metadata_.find_string(asked(key));
}

const std::vector<bool>* GgufFields::find_bools(std::string_view key) const {
  return metadata_.find_bools(asked(key));
}

const std::vector<double>* GgufFields::find_floats(std::string_view key) const {
  return metadata_.find_floats(asked(key));
}

std::vector<uint32_t> GgufFields::get_uints(std::string_view key) const {
  const std::vector<int64_t>* numbers = metadata_.find_ints(asked(key));
  std::vector<uint32_t> result;
  if (numbers == nullptr) return result;
  result.reserve(numbers->size());
  for (const int64_t number : *numbers) {
    result.push_back(checked_cast<uint32_t>(number, full(key)));
  }
  return result;
}

std::vector<uint32_t> GgufFields::get_per_layer(std::string_view key, uint32_t num_layers,
                                                uint32_t usual) const {
  const auto value = metadata_.values().find(asked(key));
  const bool list = value != metadata_.values().end() &&
                    std::holds_alternative<std::vector<int64_t>>(value->second);
  if (!list) return std::vector<uint32_t>(num_layers, get_uint(key).value_or(usual));
  std::vector<uint32_t> result = get_uints(key);
  if (result.size() != num_layers) {
    fail("metadata key '{}' has {} numbers, expected one for each of {} layers", full(key),
         result.size(), num_layers);
  }
  return result;
}

void GgufFields::refuse_unread(std::string_view family) const {
  const std::string prefix = full("");
  for (const auto& [key, value] : metadata_.values()) {
    if (!key.starts_with(prefix) || asked_.contains(key)) continue;
    switch (unread_gguf(std::string_view(key).substr(prefix.size()), value)) {
      case Unread::harmless:
        break;
      case Unread::refused:
        fail("metadata key '{}': this value is not supported", key);
      case Unread::unknown:
        fail("metadata key {} is not known for the family '{}', whose results it may change",
             formats::in_quotes(key), family);
    }
  }
}

std::vector<bool> GgufFields::get_pattern(std::string_view key, uint32_t num_layers,
                                          uint32_t usual) const {
  const auto value = metadata_.values().find(asked(key));
  if (value != metadata_.values().end() &&
      std::holds_alternative<std::vector<bool>>(value->second)) {
    const auto& flags = std::get<std::vector<bool>>(value->second);
    if (flags.size() != num_layers) {
      fail("metadata key '{}' has {} values, expected one for each of {} layers", full(key),
           flags.size(), num_layers);
    }
    return flags;
  }
  const uint32_t interval = get_uint(key).value_or(usual);
  std::vector<bool> flags(num_layers, true);
  for (uint32_t i = 0; i < num_layers; ++i) {
    if (interval != 0 && (i + 1) % interval == 0) flags[i] = false;
  }
  return flags;
}

uint32_t GgufFields::require_uint(std::string_view key) const {
  const std::optional<uint32_t> value = get_uint(key);
  if (!value) fail("metadata key '{}' is missing", full(key));
  return *value;
}

ModelConfig read_gguf_config(const GgufFields& fields, bool attention) {
  ModelConfig c;
  c.vocab_size = fields.get_uint("vocab_size").value_or(0);
  c.hidden_size = fields.require_uint("embedding_length");
  c.num_layers = fields.require_uint("block_count");
  // Without attention files say 0 heads, or nothing.
  c.num_heads = attention ? fields.require_uint("attention.head_count")
                          : fields.get_uint("attention.head_count").value_or(0);
  if (attention == (c.num_heads == 0)) {
    fail("metadata key '{}.attention.head_count' is {}", fields.arch(), c.num_heads);
  }
  if (c.num_layers > 4096) fail("metadata key '{}.block_count' is {}", fields.arch(), c.num_layers);
  const uint32_t num_blocks = c.num_layers;
  c.num_extra_layers = fields.get_uint("nextn_predict_layers").value_or(0);
  if (c.num_extra_layers >= std::max(1U, num_blocks)) {
    fail("metadata key '{}.nextn_predict_layers' is {} of {} layers", fields.arch(),
         c.num_extra_layers, num_blocks);
  }
  c.num_layers -= c.num_extra_layers;
  const uint32_t head_dim =
      fields.get_uint("attention.key_length").value_or(c.hidden_size / std::max(1U, c.num_heads));
  const uint32_t value_dim = fields.get_uint("attention.value_length").value_or(head_dim);
  if (value_dim != head_dim && fields.get_uint("attention.kv_lora_rank").value_or(0) == 0) {
    fail("{}.attention.value_length {} differs from the key length {}: not supported",
         fields.arch(), value_dim, head_dim);
  }
  c.max_position_embeddings = fields.require_uint("context_length");
  const std::optional<double> layer_eps = get_nonzero(fields, "attention.layer_norm_epsilon");
  std::optional<double> eps = get_nonzero(fields, "attention.layer_norm_rms_epsilon");
  if (!eps) eps = layer_eps;
  if (!fields.get_number("attention.layer_norm_rms_epsilon") &&
      !fields.get_number("attention.layer_norm_epsilon")) {
    fail("metadata key '{}.attention.layer_norm_rms_epsilon' is missing", fields.arch());
  }
  c.norm_eps = static_cast<float>(eps.value_or(1e-6));
  c.attention_scale =
      static_cast<float>(get_nonzero(fields, "attention.scale")
                             .value_or(1.0 / std::sqrt(static_cast<double>(head_dim))));
  if (attention) read_rope(fields, head_dim, c);
  const std::vector<uint32_t> kv_heads =
      fields.get_per_layer("attention.head_count_kv", num_blocks, c.num_heads);
  const std::vector<uint32_t> ffn_sizes =
      fields.get_per_layer("feed_forward_length", num_blocks, 0);
  const uint32_t window = fields.get_uint("attention.sliding_window").value_or(0);
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    c.layers.push_back({.num_kv_heads = kv_heads[i],
                        .head_dim = head_dim,
                        .intermediate_size = ffn_sizes[i],
                        .window = window});
  }
  return c;
}

void read_gguf_experts(const GgufFields& fields, ModelConfig& c) {
  ExpertsConfig& e = c.experts.emplace();
  e.num_experts = fields.require_uint("expert_count");
  e.top_k = fields.require_uint("expert_used_count");
  std::optional<uint32_t> size = fields.get_uint("expert_feed_forward_length");
  if (!size) size = fields.get_uint("feed_forward_length");
  e.intermediate_size = size.value_or(0);
  e.layout = ExpertLayout::stacked;
  e.normalise = fields.get_bool("expert_weights_norm").value_or(false);
  e.scale = static_cast<float>(get_nonzero(fields, "expert_weights_scale").value_or(1.0));
  for (LayerConfig& layer : c.layers) layer.experts = true;
}

}  // namespace wisp::model
