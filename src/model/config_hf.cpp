#include "model/config_hf.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "formats/json.h"

namespace wisp::model {
namespace {

using nlohmann::json;

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

RopeScaling scaling_from_name(std::string_view name) {
  if (name == "default") return RopeScaling::none;
  for (const RopeScaling s : {RopeScaling::linear, RopeScaling::llama3, RopeScaling::yarn}) {
    if (name == scaling_name(s)) return s;
  }
  fail("rope type '{}' is not supported", name);
}

// `rope` is rope_parameters (with rope_theta inside), or the older rope_scaling.
void read_rope(const JsonFields& fields, ModelConfig& c) {
  c.rope.theta = fields.get_number("rope_theta").value_or(10000.0);
  double partial = fields.get_number("partial_rotary_factor").value_or(1.0);
  const json* rope = fields.find("rope_parameters");
  if (rope == nullptr) rope = fields.find("rope_scaling");
  if (rope != nullptr) {
    if (!rope->is_object())
      fail("field 'rope_parameters': expected an object, found {}", shown(*rope));
    const JsonFields r(*rope);
    c.rope.theta = r.get_number("rope_theta").value_or(c.rope.theta);
    partial = r.get_number("partial_rotary_factor").value_or(partial);
    std::optional<std::string> type = r.get_string("rope_type");
    if (!type) type = r.get_string("type");
    c.rope.scaling = scaling_from_name(type.value_or("default"));
    if (c.rope.scaling != RopeScaling::none) c.rope.factor = r.require_number("factor");
    c.rope.original_context =
        r.get_uint("original_max_position_embeddings").value_or(c.max_position_embeddings);
    c.rope.low_freq_factor = r.get_number("low_freq_factor").value_or(c.rope.low_freq_factor);
    c.rope.high_freq_factor = r.get_number("high_freq_factor").value_or(c.rope.high_freq_factor);
    c.rope.beta_fast = r.get_number("beta_fast").value_or(c.rope.beta_fast);
    c.rope.beta_slow = r.get_number("beta_slow").value_or(c.rope.beta_slow);
    c.rope.truncate = r.get_bool("truncate").value_or(true);
    c.rope.attention_factor = r.get_number("attention_factor");
    c.rope.mscale = r.get_number("mscale");
    c.rope.mscale_all_dim = r.get_number("mscale_all_dim");
  }
  if (!(partial > 0.0 && partial <= 1.0))
    fail("partial_rotary_factor is {}, expected 0 to 1", partial);
  c.rope.rotary_dim = static_cast<uint32_t>(std::lround(c.head_dim * partial));
}

// layer_types names each layer; without it a sliding_window holds for all.
void read_layers(const JsonFields& fields, ModelConfig& c) {
  const bool sliding = fields.get_bool("use_sliding_window").value_or(true);
  const uint32_t window = sliding ? fields.get_uint("sliding_window").value_or(0) : 0;
  const json* types = fields.find("layer_types");
  if (types != nullptr && (!types->is_array() || types->size() != c.num_layers)) {
    fail("field 'layer_types': expected a list of {} names", c.num_layers);
  }
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    LayerConfig layer{.window = window};
    if (types != nullptr) {
      const json& type = (*types)[i];
      if (type == "full_attention") {
        layer.window = 0;
      } else if (type != "sliding_attention") {
        fail("layer {}: type {} is not supported", i, shown(type));
      }
    }
    c.layers.push_back(layer);
  }
}

}  // namespace

const json* JsonFields::find(std::string_view key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

bool JsonFields::has(std::string_view key) const { return find(key) != nullptr; }

std::optional<uint32_t> JsonFields::get_uint(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_number_unsigned() || value->get<uint64_t>() > UINT32_MAX) {
    fail("field '{}': expected a whole number, found {}", key, shown(*value));
  }
  return value->get<uint32_t>();
}

std::optional<double> JsonFields::get_number(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_number()) fail("field '{}': expected a number, found {}", key, shown(*value));
  return value->get<double>();
}

std::optional<bool> JsonFields::get_bool(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_boolean())
    fail("field '{}': expected true or false, found {}", key, shown(*value));
  return value->get<bool>();
}

std::optional<std::string> JsonFields::get_string(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string()) fail("field '{}': expected a string, found {}", key, shown(*value));
  return value->get<std::string>();
}

uint32_t JsonFields::require_uint(std::string_view key) const {
  const std::optional<uint32_t> value = get_uint(key);
  if (!value) fail("field '{}' is missing", key);
  return *value;
}

double JsonFields::require_number(std::string_view key) const {
  const std::optional<double> value = get_number(key);
  if (!value) fail("field '{}' is missing", key);
  return *value;
}

json read_json(const std::filesystem::path& path) {
  return formats::parse_json_object<json>(read_text(path, size_t{64} << 20), path.string());
}

ModelConfig read_hf_config(const JsonFields& fields) {
  ModelConfig c;
  c.vocab_size = fields.require_uint("vocab_size");
  c.hidden_size = fields.require_uint("hidden_size");
  c.intermediate_size = fields.require_uint("intermediate_size");
  c.num_layers = fields.require_uint("num_hidden_layers");
  c.num_heads = fields.require_uint("num_attention_heads");
  c.num_kv_heads = fields.get_uint("num_key_value_heads").value_or(c.num_heads);
  if (c.num_heads == 0) fail("field 'num_attention_heads' is 0");
  if (c.num_layers > 4096) fail("field 'num_hidden_layers' is {}", c.num_layers);
  c.head_dim = fields.get_uint("head_dim").value_or(c.hidden_size / c.num_heads);
  c.max_position_embeddings = fields.get_uint("max_position_embeddings").value_or(2048);
  c.rms_norm_eps = static_cast<float>(fields.get_number("rms_norm_eps").value_or(1e-6));
  c.activation = activation_from_name(fields.get_string("hidden_act").value_or("silu"));
  c.tie_word_embeddings = fields.get_bool("tie_word_embeddings").value_or(false);
  c.attention_scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  read_rope(fields, c);
  read_layers(fields, c);
  return c;
}

}  // namespace wisp::model
