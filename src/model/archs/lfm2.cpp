// LFM2, dense and with experts: gated short convolutions, every few layers attention with an RMS
// norm on each head. HF: modeling_lfm2.py, modeling_lfm2_moe.py.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

std::vector<RoleName> hf_names() {
  return {{Role::output_norm, "model.embedding_norm"},
          {Role::attention_norm, "model.layers.{}.operator_norm"},
          {Role::ffn_norm, "model.layers.{}.ffn_norm"},
          {Role::q_norm, "model.layers.{}.self_attn.q_layernorm"},
          {Role::k_norm, "model.layers.{}.self_attn.k_layernorm"},
          {Role::o_proj, "model.layers.{}.self_attn.out_proj"},
          {Role::gate_proj, "model.layers.{}.feed_forward.w1"},
          {Role::up_proj, "model.layers.{}.feed_forward.w3"},
          {Role::down_proj, "model.layers.{}.feed_forward.w2"},
          {Role::router, "model.layers.{}.feed_forward.gate"},
          {Role::router_correction, "model.layers.{}.feed_forward.expert_bias"},
          {Role::expert_gate, "model.layers.{}.feed_forward.experts.{}.w1"},
          {Role::expert_up, "model.layers.{}.feed_forward.experts.{}.w3"},
          {Role::expert_down, "model.layers.{}.feed_forward.experts.{}.w2"}};
}

std::vector<RoleName> gguf_names() {
  return {{Role::output_norm, "token_embd_norm"}, {Role::output_norm, "output_norm"}};
}

// Where there are no layer_types, full_attn_idxs names the layers that attend; without it all do.
void read_kinds(const JsonFields& fields, ModelConfig& c) {
  c.qk_norm = QkNorm::each_head;
  c.conv_taps = fields.get_uint("conv_L_cache").value_or(3);
  c.conv_bias = fields.get_bool("conv_bias").value_or(false);
  expect_silu(c);
  for (const LayerConfig& layer : c.layers) {
    if (c.rope.rotary_dim != layer.head_dim) fail("field 'partial_rotary_factor' is not supported");
  }
  const std::vector<uint32_t> attend = fields.get_uints("full_attn_idxs");
  if (fields.has("layer_types") || attend.empty()) return;
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    if (std::ranges::find(attend, i) != attend.end()) continue;
    set_mixer(c.layers[i], Mixer::short_conv);
  }
}

void read_dense(const JsonFields& fields, ModelConfig& c) {
  read_kinds(fields, c);
  fields.pass_over({"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
                    "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init",
                    "num_heads"});
  for (const std::string_view key : {"block_use_swiglu", "use_pos_enc"}) {
    if (!fields.get_bool(key).value_or(true)) fail("field '{}': false is not supported", key);
  }
  c.tie_word_embeddings = fields.get_bool("tie_embedding").value_or(c.tie_word_embeddings);
  uint64_t size = fields.require_uint(fields.first_of({"block_ff_dim", "intermediate_size"}));
  const uint32_t multiple = fields.require_uint("block_multiple_of");
  const double factor = fields.require_number("block_ffn_dim_multiplier");
  if (multiple == 0 || !(factor > 0.0 && factor < 64.0)) {
    fail("field 'block_multiple_of' is {}, 'block_ffn_dim_multiplier' {}", multiple, factor);
  }
  if (fields.get_bool("block_auto_adjust_ff_dim").value_or(true)) {
    size = static_cast<uint64_t>(factor * std::floor(2.0 * static_cast<double>(size) / 3.0));
    size = (size + multiple - 1) / multiple * multiple;
  }
  default_ffn_size(c, 0);
  for (LayerConfig& layer : c.layers) {
    layer.intermediate_size = static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX));
  }
}

// Layers without KV heads convolve.
void read_gguf(const GgufFields& fields, ModelConfig& c) {
  c.qk_norm = QkNorm::each_head;
  c.conv_taps = fields.require_uint("shortconv.l_cache");
  for (LayerConfig& layer : c.layers) {
    if (layer.num_kv_heads != 0) continue;
    set_mixer(layer, Mixer::short_conv);
  }
}

}  // namespace

const Arch kLfm2 = {
    .name = "lfm2",
    .hf_model_types = {"lfm2"},
    .gguf_architectures = {"lfm2"},
    .hf_names = hf_names(),
    .gguf_names = gguf_names(),
    .windows = false,
    .hf_defaults = R"({"tie_word_embeddings": true, "norm_eps": 1e-5, "rope_theta": 1000000.0,
                       "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
                       "max_position_embeddings": 128000})",
    .from_hf = read_dense,
    .from_gguf = read_gguf,
};

const Arch kLfm2Moe = {
    .name = "lfm2_moe",
    .hf_model_types = {"lfm2_moe"},
    .gguf_architectures = {"lfm2moe"},
    .hf_names = hf_names(),
    .gguf_names = gguf_names(),
    .windows = false,
    .hf_defaults = R"({"tie_word_embeddings": true, "norm_eps": 1e-5, "rope_theta": 1000000.0,
                       "num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 1792,
                       "num_dense_layers": 2, "norm_topk_prob": true, "use_expert_bias": true,
                       "max_position_embeddings": 128000})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_kinds(fields, c);
          read_hf_experts(fields, c);
          c.experts->score = plan::RouterScore::sigmoid;
          c.experts->correction_bias = fields.get_bool("use_expert_bias").value_or(true);
          c.experts->scale =
              static_cast<float>(fields.get_number("routed_scaling_factor").value_or(1.0));
          const uint32_t dense = fields.require_uint("num_dense_layers");
          for (uint32_t i = 0; i < c.num_layers; ++i) c.layers[i].experts = i >= dense;
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gguf(fields, c);
          read_gguf_experts(fields, c);
          if (fields.get_uint("expert_gating_func").value_or(2) != 2) {
            fail("{}.expert_gating_func: only the sigmoid is supported", fields.arch());
          }
          c.experts->score = plan::RouterScore::sigmoid;
          c.experts->correction_bias = true;
          c.experts->normalise = true;
          const uint32_t dense = fields.require_uint("leading_dense_block_count");
          for (uint32_t i = 0; i < c.num_layers; ++i) c.layers[i].experts = i >= dense;
        },
};

}  // namespace wisp::model
