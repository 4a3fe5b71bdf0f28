// Gemma 4, text: layers without a window have heads of their own size, turn only some pairs and may
// take their keys as values; the last layers may share the keys and values of earlier ones, tokens
// may have an embedding for each layer, and experts may run beside the network. HF:
// modeling_gemma4.py.
#include <cmath>

#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

void read_gemma4(ModelConfig& c) {
  read_gemma(c);
  c.attention_scale = 1.0F;
  c.qk_norm = QkNorm::each_head;
  c.v_norm = true;
  c.layer_scales = true;
  use_local_rope(c);
}

void finish_experts(ModelConfig& c) {
  ExpertsConfig& e = *c.experts;
  e.layout = ExpertLayout::stacked;
  e.fused_gate_up = true;
  e.normalise = true;
  e.expert_scales = true;
  e.beside_network = true;
  e.router_scale = 1.0F / std::sqrt(static_cast<float>(c.hidden_size));
}

// Both kinds of layers turn their heads as a whole, by frequencies of their own.
void finish_ropes(ModelConfig& c) {
  for (const LayerConfig& layer : c.layers) {
    RopeConfig& rope = layer.rope == LayerRope::local ? *c.local_rope : c.rope;
    rope.rotary_dim = layer.head_dim;
    if (rope.scaling != RopeScaling::none && rope.scaling != RopeScaling::proportional) {
      fail("rope type '{}' is not supported", scaling_name(rope.scaling));
    }
  }
  for (const LayerConfig& layer : c.layers) {
    const RopeConfig& rope = layer.rope == LayerRope::local ? *c.local_rope : c.rope;
    if (rope.rotary_dim == layer.head_dim) continue;
    fail("layers of one type have heads of {} and of {}: not supported", layer.head_dim,
         rope.rotary_dim);
  }
}

// The sizes of layers without a window, which today's files have in per_layer_config.
void read_global_sizes(const JsonFields& fields, ModelConfig& c, bool keys_as_values) {
  for (LayerConfig& layer : c.layers) {
    if (layer.window != 0) continue;
    layer.keys_as_values = keys_as_values;
    if (fields.has("per_layer_config")) continue;
    layer.head_dim = fields.get_uint("global_head_dim").value_or(512);
    if (!keys_as_values) continue;
    layer.num_kv_heads = fields.get_uint("num_global_key_value_heads").value_or(layer.num_kv_heads);
  }
}

void read_hf(const JsonFields& fields, ModelConfig& c) {
  fields.pass_over({"global_head_dim", "num_global_key_value_heads", "vocab_size_per_layer_input",
                    "num_experts", "top_k_experts", "moe_intermediate_size"});
  if (fields.get_string("use_bidirectional_attention") == "all") {
    fail("field 'use_bidirectional_attention': 'all' is not supported");
  }
  read_window_pattern(fields, c, 6);
  if (c.num_layers > 0) c.layers.back().window = 0;
  read_global_sizes(fields, c, fields.get_bool("attention_k_eq_v").value_or(false));
  read_gemma4(c);
  c.logit_softcap = static_cast<float>(fields.get_number("final_logit_softcapping").value_or(0.0));
  if (!c.local_rope) fail("field 'rope_parameters.sliding_attention' is missing");
  finish_ropes(c);
  share_kv(c, fields.get_uint("num_kv_shared_layers").value_or(0));
  const bool wide = fields.get_bool("use_double_wide_mlp").value_or(false);
  for (LayerConfig& layer : c.layers) {
    if (layer.intermediate_size > UINT32_MAX / 2) {
      fail("field 'intermediate_size' is {}", layer.intermediate_size);
    }
    layer.intermediate_size *= layer.kv_of && wide ? 2 : 1;
  }
  c.per_layer_dim = fields.get_uint("hidden_size_per_layer_input").value_or(0);
  if (c.per_layer_dim != 0) {
    c.per_layer_vocab = fields.require_uint("vocab_size_per_layer_input");
    if (c.per_layer_vocab != c.vocab_size) {
      fail("field 'vocab_size_per_layer_input': a size other than vocab_size is not supported");
    }
  }
  if (!fields.get_bool("enable_moe_block").value_or(false)) return;
  read_hf_experts(fields, c);
  finish_experts(c);
}

// Heads turn as a whole and are as wide as their values.
void expect_head_dim(const GgufFields& fields, std::string_view key, uint32_t head_dim) {
  const uint32_t stated = fields.get_uint(key).value_or(head_dim);
  if (stated == head_dim) return;
  fail("{}.{}: {} in heads of {} is not supported", fields.arch(), key, stated, head_dim);
}

void read_gguf(const GgufFields& fields, ModelConfig& c) {
  set_windows(fields, c);
  const uint32_t local_dim = fields.require_uint("attention.key_length_swa");
  expect_head_dim(fields, "attention.value_length_swa", local_dim);
  expect_head_dim(fields, "rope.dimension_count_swa", local_dim);
  expect_head_dim(fields, "rope.dimension_count", fields.require_uint("attention.key_length"));
  for (LayerConfig& layer : c.layers) {
    layer.keys_as_values = layer.window == 0;
    if (layer.window != 0) layer.head_dim = local_dim;
  }
  c.local_rope = RopeConfig{.theta = fields.get_number("rope.freq_base_swa").value_or(10000.0)};
  c.rope.stored_factors = true;
  c.activation = plan::Activation::gelu_tanh;
  read_gemma4(c);
  finish_ropes(c);
  share_kv(c, fields.get_uint("attention.shared_kv_layers").value_or(0));
  c.logit_softcap = static_cast<float>(fields.get_number("final_logit_softcapping").value_or(0.0));
  c.per_layer_dim = fields.get_uint("embedding_length_per_layer_input").value_or(0);
  if (fields.get_uint("expert_count").value_or(0) == 0) return;
  read_gguf_experts(fields, c);
  finish_experts(c);
}

}  // namespace

const Arch kGemma4 = {
    .name = "gemma4",
    .hf_model_types = {"gemma4_text"},
    .gguf_architectures = {"gemma4"},
    .hf_names = {{Role::attention_post_norm, "model.layers.{}.post_attention_layernorm"},
                 {Role::ffn_norm, "model.layers.{}.pre_feedforward_layernorm"},
                 {Role::router, "model.layers.{}.router.proj"},
                 {Role::expert_gate_up, "model.layers.{}.experts.gate_up_proj"},
                 {Role::expert_down, "model.layers.{}.experts.down_proj"}},
    .single_layers = true,
    .hf_defaults =
        R"({"tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 256,
            "max_position_embeddings": 131072, "rope_theta": 1000000.0,
            "rope_local_base_freq": 10000.0, "sliding_window": 512, "hidden_size_per_layer_input": 256,
            "vocab_size_per_layer_input": 262144,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                                   "rope_theta": 1000000.0}}})",
    .from_hf = read_hf,
    .from_gguf = read_gguf,
};

}  // namespace wisp::model
