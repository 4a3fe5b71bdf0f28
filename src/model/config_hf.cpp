#include "model/config_hf.h"

#include <algorithm>
#include <charconv>
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
  if (name == "default" || name == "none") return RopeScaling::none;
  if (name == "su") return RopeScaling::longrope;  // its older name
  for (const RopeScaling s : {RopeScaling::linear, RopeScaling::llama3, RopeScaling::yarn,
                              RopeScaling::longrope, RopeScaling::proportional}) {
    if (name == scaling_name(s)) return s;
  }
  fail("rope type '{}' is not supported", name);
}

// `r` is rope_parameters (with rope_theta inside), or the older rope_scaling.
void read_scaling(const JsonFields& r, RopeConfig& rope) {
  rope.theta = r.get_number("rope_theta").value_or(rope.theta);
  std::optional<std::string> type = r.get_string("rope_type");
  if (!type) type = r.get_string("type");
  const std::optional<double> alpha = r.get_number("alpha");
  if (type == "dynamic" && alpha.value_or(0.0) > 0.0) {
    // NTK-aware scaling with a fixed alpha: a larger base.
    rope.theta *= std::pow(*alpha, rope.rotary_dim / (rope.rotary_dim - 2.0));
    return;
  }
  rope.scaling = scaling_from_name(type.value_or("default"));
  if (rope.scaling == RopeScaling::none) return;
  rope.original_context =
      r.get_uint("original_max_position_embeddings").value_or(rope.original_context);
  if (rope.scaling == RopeScaling::longrope || rope.scaling == RopeScaling::proportional) {
    rope.factor = r.get_number("factor").value_or(1.0);
  } else {
    rope.factor = r.require_number("factor");
  }
  rope.low_freq_factor = r.get_number("low_freq_factor").value_or(rope.low_freq_factor);
  rope.high_freq_factor = r.get_number("high_freq_factor").value_or(rope.high_freq_factor);
  rope.beta_fast = r.get_number("beta_fast").value_or(rope.beta_fast);
  rope.beta_slow = r.get_number("beta_slow").value_or(rope.beta_slow);
  rope.truncate = r.get_bool("truncate").value_or(true);
  rope.attention_factor = r.get_number("attention_factor");
  rope.mscale = r.get_number("mscale");
  rope.mscale_all_dim = r.get_number("mscale_all_dim");
  rope.short_factors = r.get_numbers("short_factor");
  rope.long_factors = r.get_numbers("long_factor");
}

// The parameters of a type of layers, where there are any; `partial` is what holds without.
void read_parameters(const json* own, double partial, uint32_t head_dim, RopeConfig& rope) {
  if (own != nullptr) {
    partial = JsonFields(*own).get_number("partial_rotary_factor").value_or(partial);
  }
  if (!(partial > 0.0 && partial <= 1.0)) {
    fail("partial_rotary_factor is {}, expected 0 to 1", partial);
  }
  rope.rotary_dim = static_cast<uint32_t>(head_dim * partial);
  if (own == nullptr) return;
  read_scaling(JsonFields(*own), rope);
  if (rope.scaling != RopeScaling::proportional) return;
  rope.rotary_dim = head_dim;
  rope.proportion = partial;
}

// rope_parameters hold for all layers, or there are some for each type of layer.
void read_rope(const JsonFields& fields, uint32_t head_dim, ModelConfig& c) {
  RopeConfig& rope = c.rope;
  rope.theta =
      fields.get_number(fields.first_of({"rope_theta", "rotary_emb_base"})).value_or(10000.0);
  rope.original_context =
      fields.get_uint("original_max_position_embeddings").value_or(c.max_position_embeddings);
  const double partial =
      fields.get_number(fields.first_of({"partial_rotary_factor", "rotary_pct"})).value_or(1.0);
  const std::string_view key = fields.first_of({"rope_parameters", "rope_scaling"});
  const json* added = fields.find("rope_scaling");  // beside rope_parameters it goes before them
  const json* parameters = fields.find(key);
  if (parameters != nullptr && !parameters->is_object()) {
    fail("field '{}': expected an object, found {}", key, shown(*parameters));
  }
  const auto of_type = [&](std::string_view type) -> const json* {
    if (parameters == nullptr || !parameters->contains(type)) return nullptr;
    const json& own = (*parameters)[type];
    if (!own.is_object())
      fail("field '{}.{}': expected an object, found {}", key, type, shown(own));
    return &own;
  };
  const json* global = of_type("full_attention");
  const json* local = of_type("sliding_attention");
  if (global == nullptr) global = parameters;
  if (local != nullptr) read_parameters(local, partial, head_dim, c.local_rope.emplace(rope));
  read_parameters(global, partial, head_dim, rope);
  if (added == nullptr || added == parameters) return;
  if (!added->is_object())
    fail("field 'rope_scaling': expected an object, found {}", shown(*added));
  read_scaling(JsonFields(*added), rope);
}

// layer_types names each layer; without it a sliding_window holds for all, as do the sizes.
void read_layers(const JsonFields& fields, uint32_t head_dim, ModelConfig& c) {
  const LayerConfig usual = {
      .num_kv_heads = fields.get_uint(fields.first_of({"num_key_value_heads", "num_kv_heads"}))
                          .value_or(c.num_heads),
      .head_dim = head_dim,
      .window = fields.get_uint("sliding_window").value_or(0)};
  const std::vector<uint32_t> sizes = fields.get_per_layer(
      fields.first_of({"intermediate_size", "ffn_hidden_size", "n_inner"}), c.num_layers, 0);
  const json* types = fields.find("layer_types");
  if (types != nullptr && (!types->is_array() || types->size() != c.num_layers)) {
    fail("field 'layer_types': expected a list of {} names", c.num_layers);
  }
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    LayerConfig layer = usual;
    layer.intermediate_size = sizes[i];
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

uint32_t layer_number(std::string_view text, uint32_t num_layers) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number >= num_layers) {
    fail("field 'per_layer_config': '{}' is not one of {} layers", text, num_layers);
  }
  return number;
}

}  // namespace

const json* JsonFields::find(std::string_view key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

std::string_view JsonFields::first_of(std::initializer_list<std::string_view> keys) const {
  const auto* there = std::ranges::find_if(keys, [&](std::string_view key) { return has(key); });
  return there != keys.end() ? *there : *keys.begin();
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

std::vector<uint32_t> JsonFields::get_uints(std::string_view key) const {
  const json* list = find(key);
  std::vector<uint32_t> result;
  if (list == nullptr) return result;
  if (!list->is_array()) fail("field '{}': expected a list, found {}", key, shown(*list));
  for (const json& item : *list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > UINT32_MAX) {
      fail("field '{}': expected whole numbers, found {}", key, shown(item));
    }
    result.push_back(item.get<uint32_t>());
  }
  return result;
}

std::vector<double> JsonFields::get_numbers(std::string_view key) const {
  const json* list = find(key);
  std::vector<double> result;
  if (list == nullptr) return result;
  if (!list->is_array())
    fail("field '{}': expected a list of numbers, found {}", key, shown(*list));
  for (const json& item : *list) {
    if (!item.is_number()) fail("field '{}': expected numbers, found {}", key, shown(item));
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
    fail("field '{}' has {} numbers, expected one for each of {} layers", key, result.size(),
         num_layers);
  }
  return result;
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
  if (const json* quantisation = fields.find("quantization_config")) {
    const json* method = quantisation->is_object() && quantisation->contains("quant_method")
                             ? &(*quantisation)["quant_method"]
                             : quantisation;
    fail("field 'quantization_config': {} is not supported", shown(*method));
  }
  c.vocab_size = fields.require_uint("vocab_size");
  c.hidden_size = fields.require_uint(fields.first_of({"hidden_size", "n_embd"}));
  c.num_layers = fields.require_uint(fields.first_of({"num_hidden_layers", "n_layer"}));
  c.num_heads = fields.require_uint(fields.first_of({"num_attention_heads", "n_head"}));
  if (c.num_heads == 0) fail("field 'num_attention_heads' is 0");
  if (c.num_layers > 4096) fail("field 'num_hidden_layers' is {}", c.num_layers);
  const uint32_t head_dim = fields.get_uint("head_dim").value_or(c.hidden_size / c.num_heads);
  c.max_position_embeddings =
      fields.get_uint(fields.first_of({"max_position_embeddings", "n_positions"})).value_or(2048);
  c.norm_eps =
      static_cast<float>(fields
                             .get_number(fields.first_of({"rms_norm_eps", "layer_norm_eps",
                                                          "layer_norm_epsilon", "norm_eps"}))
                             .value_or(1e-6));
  const std::string_view activation =
      fields.first_of({"hidden_activation", "hidden_act", "activation_function", "activation"});
  c.activation = activation_from_name(fields.get_string(activation).value_or("silu"));
  c.tie_word_embeddings = fields.get_bool("tie_word_embeddings").value_or(false);
  c.attention_scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  c.num_extra_layers = fields.get_uint("num_nextn_predict_layers").value_or(0);
  if (c.num_extra_layers > 64) fail("field 'num_nextn_predict_layers' is {}", c.num_extra_layers);
  read_rope(fields, head_dim, c);
  read_layers(fields, head_dim, c);
  return c;
}

void read_hf_single_layers(const JsonFields& fields, ModelConfig& c) {
  const json* all = fields.find("per_layer_config");
  if (all == nullptr) return;
  if (!all->is_object()) {
    fail("field 'per_layer_config': expected an object, found {}", shown(*all));
  }
  for (const auto& [number, own] : all->items()) {
    LayerConfig& layer = c.layers[layer_number(number, c.num_layers)];
    if (!own.is_object()) {
      fail("field 'per_layer_config.{}': expected an object, found {}", number, shown(own));
    }
    for (const auto& [key, value] : own.items()) {
      uint32_t* size = key == "head_dim"              ? &layer.head_dim
                       : key == "num_key_value_heads" ? &layer.num_kv_heads
                       : key == "intermediate_size"   ? &layer.intermediate_size
                                                      : nullptr;
      if (size == nullptr) fail("field 'per_layer_config.{}.{}' is not supported", number, key);
      *size = JsonFields(own).require_uint(key);
    }
  }
}

void read_hf_experts(const JsonFields& fields, ModelConfig& c) {
  ExpertsConfig& e = c.experts.emplace();
  e.num_experts = fields.require_uint(
      fields.first_of({"num_local_experts", "num_experts", "n_routed_experts"}));
  e.top_k = fields.require_uint(fields.first_of({"num_experts_per_tok", "top_k_experts"}));
  e.intermediate_size = fields.get_uint("moe_intermediate_size")
                            .value_or(fields.get_uint("intermediate_size").value_or(0));
  e.normalise = fields.get_bool("norm_topk_prob").value_or(false);
  for (LayerConfig& layer : c.layers) layer.experts = true;
}

}  // namespace wisp::model
