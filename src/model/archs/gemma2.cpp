// Gemma 2: norms around attention and network, soft caps, every other layer with a window. HF:
// modeling_gemma2.py.
#include <cmath>

#include "model/archs/families.h"

namespace wisp::model {

void read_gemma(ModelConfig& c) {
  c.post_norms = true;
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden_size));
}

void read_gemma_hf(const JsonFields& fields, ModelConfig& c) {
  read_gemma(c);
  c.norm_weight_offset = 1.0F;
  c.attention_scale =
      1.0F / std::sqrt(static_cast<float>(fields.require_number("query_pre_attn_scalar")));
  c.attention_softcap =
      static_cast<float>(fields.get_number("attn_logit_softcapping").value_or(0.0));
  c.logit_softcap = static_cast<float>(fields.get_number("final_logit_softcapping").value_or(0.0));
}

std::vector<RoleName> gemma_names() {
  return {{Role::attention_post_norm, "model.layers.{}.post_attention_layernorm"},
          {Role::ffn_norm, "model.layers.{}.pre_feedforward_layernorm"}};
}

const Arch kGemma2 = {
    .name = "gemma2",
    .hf_model_types = {"gemma2"},
    .gguf_architectures = {"gemma2"},
    .hf_names = gemma_names(),
    .hf_defaults =
        R"({"tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4096, "query_pre_attn_scalar": 256,
                       "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_gemma_hf(fields, c);
          read_window_pattern(fields, c, 2);
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gemma(c);
          c.activation = plan::Activation::gelu_tanh;
          // The file does not say it: the 27B model divides by hidden_size / num_heads.
          if (c.num_layers == 46) {
            c.attention_scale = 1.0F / std::sqrt(static_cast<float>(c.hidden_size) /
                                                 static_cast<float>(c.num_heads));
          }
          c.attention_softcap =
              static_cast<float>(fields.get_number("attn_logit_softcapping").value_or(50.0));
          c.logit_softcap =
              static_cast<float>(fields.get_number("final_logit_softcapping").value_or(30.0));
          read_window_pattern(fields, c, 2);
        },
};

}  // namespace wisp::model
