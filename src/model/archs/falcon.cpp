// Falcon 7B and its successors: attention and network side by side, with one layer norm or with
// two. HF: modeling_falcon.py.
#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_falcon(ModelConfig& c) {
  c.norm = plan::NormKind::layer;
  c.gated_ffn = false;
  default_ffn_size(c, 4 * c.hidden_size);
}

void refuse(const JsonFields& fields, std::string_view name, bool value) {
  if (fields.get_bool(name).value_or(!value) == value) {
    fail("field '{}': {} is not supported", name, value);
  }
}

}  // namespace

const Arch kFalcon = {
    .name = "falcon",
    .hf_model_types = {"falcon"},
    .gguf_architectures = {"falcon"},
    .hf_names = {{Role::token_embedding, "transformer.word_embeddings"},
                 {Role::output_norm, "transformer.ln_f"},
                 {Role::attention_norm, "transformer.h.{}.input_layernorm"},
                 {Role::attention_norm, "transformer.h.{}.ln_attn"},
                 {Role::ffn_norm, "transformer.h.{}.ln_mlp"},
                 {Role::qkv_proj, "transformer.h.{}.self_attention.query_key_value"},
                 {Role::o_proj, "transformer.h.{}.self_attention.dense"},
                 {Role::up_proj, "transformer.h.{}.mlp.dense_h_to_4h"},
                 {Role::down_proj, "transformer.h.{}.mlp.dense_4h_to_h"}},
    .gguf_names = {{Role::attention_norm, "blk.{}.attn_norm_2"},
                   {Role::attention_norm, "blk.{}.attn_norm"},
                   {Role::ffn_norm, "blk.{}.attn_norm"}},
    .windows = false,
    .hf_defaults = R"({"tie_word_embeddings": true, "multi_query": true, "activation": "gelu",
                       "layer_norm_epsilon": 1e-5})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          fields.pass_over({"parallel_attn", "multi_query", "num_ln_in_parallel_attn"});
          const bool grouped = fields.get_bool("new_decoder_architecture").value_or(false);
          c.qkv_bias = c.o_bias = c.ffn_bias = fields.get_bool("bias");
          refuse(fields, "alibi", true);
          if (!grouped) refuse(fields, "parallel_attn", false);
          read_falcon(c);
          c.qkv_layout = QkvLayout::grouped;
          for (LayerConfig& layer : c.layers) {
            if (grouped) break;
            layer.num_kv_heads = fields.get_bool("multi_query").value_or(true) ? 1 : c.num_heads;
          }
          const bool two_norms =
              grouped && fields.get_uint("num_ln_in_parallel_attn").value_or(2) == 2;
          c.residual = two_norms ? Residual::parallel : Residual::parallel_shared;
        },
    .from_gguf =
        [](const GgufFields&, ModelConfig& c) {
          read_falcon(c);
          c.activation = plan::Activation::gelu_erf;
          c.qkv_layout = QkvLayout::stacked;
          const bool grouped = shared_size(c, &LayerConfig::num_kv_heads) != 1U;
          c.residual = grouped ? Residual::parallel : Residual::parallel_shared;
        },
};

}  // namespace wisp::model
