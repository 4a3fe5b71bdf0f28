// GPT-NeoX and Pythia: attention and network side by side, each on a layer norm of its own, biases,
// part of each head rotates. HF: modeling_gpt_neox.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_neox(ModelConfig& c, bool parallel) {
  c.norm = plan::NormKind::layer;
  c.gated_ffn = false;
  if (parallel) c.residual = Residual::parallel;
}

}  // namespace

const Arch kGptNeoX = {
    .name = "gpt_neox",
    .hf_model_types = {"gpt_neox"},
    .gguf_architectures = {"gptneox"},
    .hf_names = {{Role::token_embedding, "gpt_neox.embed_in"},
                 {Role::output_norm, "gpt_neox.final_layer_norm"},
                 {Role::lm_head, "embed_out"},
                 {Role::attention_norm, "gpt_neox.layers.{}.input_layernorm"},
                 {Role::qkv_proj, "gpt_neox.layers.{}.attention.query_key_value"},
                 {Role::o_proj, "gpt_neox.layers.{}.attention.dense"},
                 {Role::ffn_norm, "gpt_neox.layers.{}.post_attention_layernorm"},
                 {Role::up_proj, "gpt_neox.layers.{}.mlp.dense_h_to_4h"},
                 {Role::down_proj, "gpt_neox.layers.{}.mlp.dense_4h_to_h"}},
    .windows = false,
    .hf_defaults = R"({"layer_norm_eps": 1e-5, "rotary_pct": 0.25, "hidden_act": "gelu"})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_neox(c, fields.get_bool("use_parallel_residual").value_or(true));
          c.qkv_layout = QkvLayout::grouped;
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_neox(c, fields.get_bool("use_parallel_residual").value_or(true));
          c.qkv_layout = QkvLayout::stacked;
          c.activation = plan::Activation::gelu_erf;
        },
};

}  // namespace wisp::model
