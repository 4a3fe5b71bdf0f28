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

RopeScaling scaling_from_name(std::string_view name) {
  if (name == "default" || name == "none" || name == "mrope") return RopeScaling::none;
  if (name == "su") return RopeScaling::longrope;  // its older name
  for (const RopeScaling s : {RopeScaling::linear, RopeScaling::llama3, RopeScaling::yarn,
                              RopeScaling::longrope, RopeScaling::proportional}) {
    if (name == scaling_name(s)) return s;
  }
  fail("rope type '{}' is not supported", name);
}

// `r` is rope_parameters (with rope_theta inside), or the older rope_scaling. All of it is read,
// also what the type has no use for.
void read_scaling(const JsonFields& r, RopeConfig& rope) {
  rope.theta = r.get_number("rope_theta").value_or(rope.theta);
  if (r.has("mrope_section")) rope.sections = r.get_uints("mrope_section");
  rope.interleaved_sections = r.get_bool("mrope_interleaved").value_or(rope.interleaved_sections);
  const std::optional<std::string> type = r.get_string(r.first_of({"rope_type", "type"}));
  const std::optional<double> alpha = r.get_number("alpha");
  const std::optional<double> factor = r.get_number("factor");
  RopeConfig scaled = rope;
  scaled.original_context =
      r.get_uint("original_max_position_embeddings").value_or(rope.original_context);
  scaled.low_freq_factor = r.get_number("low_freq_factor").value_or(rope.low_freq_factor);
  scaled.high_freq_factor = r.get_number("high_freq_factor").value_or(rope.high_freq_factor);
  scaled.beta_fast = r.get_number("beta_fast").value_or(rope.beta_fast);
  scaled.beta_slow = r.get_number("beta_slow").value_or(rope.beta_slow);
  scaled.truncate = r.get_bool("truncate").value_or(true);
  scaled.attention_factor = r.get_number("attention_factor");
  scaled.mscale = r.get_number("mscale");
  scaled.mscale_all_dim = r.get_number("mscale_all_dim");
  scaled.short_factors = r.get_numbers("short_factor");
  scaled.long_factors = r.get_numbers("long_factor");
  if (type == "dynamic" && alpha.value_or(0.0) > 0.0) {
    // NTK-aware scaling with a fixed alpha: a larger base.
    rope.theta *= std::pow(*alpha, rope.rotary_dim / (rope.rotary_dim - 2.0));
    return;
  }
  scaled.scaling = scaling_from_name(type.value_or("default"));
  if (scaled.scaling == RopeScaling::none) {
    rope.scaling = RopeScaling::none;
    return;
  }
  const bool needs_factor =
      scaled.scaling != RopeScaling::longrope && scaled.scaling != RopeScaling::proportional;
  scaled.factor = needs_factor ? r.require_number("factor") : factor.value_or(1.0);
  rope = std::move(scaled);
}

// The parameters of a type of layers, where there are any; `partial` is what holds without.
void read_parameters(const JsonFields* own, double partial, uint32_t head_dim, RopeConfig& rope) {
  if (own != nullptr) partial = own->get_number("partial_rotary_factor").value_or(partial);
  if (!(partial > 0.0 && partial <= 1.0)) {
    fail("partial_rotary_factor is {}, expected 0 to 1", partial);
  }
  rope.rotary_dim = static_cast<uint32_t>(head_dim * partial);
  if (own == nullptr) return;
  read_scaling(*own, rope);
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
  const std::string_view part = fields.first_of(
      {"partial_rotary_factor", "rotary_pct", "rope_pct", "rope_percent", "rotary_percent"});
  const double partial = fields.get_number(part).value_or(1.0);
  const JsonFields* added = fields.find_object("rope_scaling");
  const JsonFields* parameters = fields.find_object("rope_parameters");
  if (parameters == nullptr) std::swap(parameters, added);
  const JsonFields* global = nullptr;
  const JsonFields* local = nullptr;
  if (parameters != nullptr) {
    global = parameters->find_object("full_attention");
    local = parameters->find_object("sliding_attention");
  }
  if (global == nullptr) global = parameters;
  const std::optional<double> local_theta = fields.get_number("rope_local_base_freq");
  if (local != nullptr) {
    RopeConfig& own = c.local_rope.emplace(rope);
    own.theta = local_theta.value_or(rope.theta);
    read_parameters(local, partial, head_dim, own);
  }
  read_parameters(global, partial, head_dim, rope);
  if (added != nullptr) read_scaling(*added, rope);  // it goes before rope_parameters
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
      } else if (type == "conv") {
        set_mixer(layer, Mixer::short_conv);
      } else if (type == "linear_attention") {
        set_mixer(layer, Mixer::delta_net);
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

// Some configs only list what each layer is.
uint32_t read_num_layers(const JsonFields& fields) {
  const std::string_view key = fields.first_of({"num_hidden_layers", "n_layer"});
  const json* kinds = fields.find("layers_block_type");
  if (fields.has(key) || kinds == nullptr || !kinds->is_array()) return fields.require_uint(key);
  return static_cast<uint32_t>(std::min<size_t>(kinds->size(), UINT32_MAX));
}

// Each family reads one of the names; what another says must not count in its place.
float read_norm_eps(const JsonFields& fields) {
  std::string_view name;
  double eps = 1e-6;
  for (const std::string_view key :
       {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps"}) {
    const std::optional<double> own = fields.get_number(key);
    if (!own) continue;
    if (!name.empty() && *own != eps) {
      fail("fields '{}' and '{}' differ: {} and {}", name, key, eps, *own);
    }
    name = key;
    eps = *own;
  }
  return static_cast<float>(eps);
}

}  // namespace

json read_json(const std::filesystem::path& path) {
  return formats::read_json_object<json>(path, {.python_numbers = true});
}

ModelConfig read_hf_config(const JsonFields& fields, bool attention) {
  ModelConfig c;
  fields.pass_over({"quantization_config"});  // formats reads it
  c.vocab_size = fields.require_uint("vocab_size");
  c.hidden_size = fields.require_uint(fields.first_of({"hidden_size", "n_embd"}));
  c.num_layers = read_num_layers(fields);
  if (c.num_layers > 4096) fail("field 'num_hidden_layers' is {}", c.num_layers);
  uint32_t head_dim = 0;
  if (attention) {
    c.num_heads = fields.require_uint(fields.first_of({"num_attention_heads", "n_head"}));
    if (c.num_heads == 0) fail("field 'num_attention_heads' is 0");
    head_dim = fields.get_uint("head_dim").value_or(c.hidden_size / c.num_heads);
  }
  c.max_position_embeddings =
      fields.get_uint(fields.first_of({"max_position_embeddings", "n_positions"})).value_or(2048);
  c.norm_eps = read_norm_eps(fields);
  const std::string_view activation =
      fields.first_of({"hidden_activation", "hidden_act", "activation_function", "activation"});
  c.activation = activation_from_name(fields.get_string(activation).value_or("silu"));
  c.tie_word_embeddings = fields.get_bool("tie_word_embeddings").value_or(false);
  c.qkv_bias = c.o_bias = fields.get_bool("attention_bias");
  c.ffn_bias = fields.get_bool("mlp_bias");
  c.attention_scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  c.num_extra_layers = fields.get_uint("num_nextn_predict_layers").value_or(0);
  if (c.num_extra_layers > 64) fail("field 'num_nextn_predict_layers' is {}", c.num_extra_layers);
  if (attention) read_rope(fields, head_dim, c);
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
  e.top_k = fields.require_uint(
      fields.first_of({"num_experts_per_tok", "top_k_experts", "experts_per_token"}));
  e.intermediate_size = fields.get_uint("moe_intermediate_size")
                            .value_or(fields.get_uint("intermediate_size").value_or(0));
  e.normalise = fields.get_bool("norm_topk_prob").value_or(false);
  for (LayerConfig& layer : c.layers) layer.experts = true;
}

}  // namespace wisp::model
