// Gemma 3, text: norms around attention and network and on each head of q and k, five layers with a
// window and a rope of their own to one without. HF: modeling_gemma3.py.
#include <cmath>

#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {

const Arch kGemma3 = {
    .name = "gemma3",
    .hf_model_types = {"gemma3_text"},
    .gguf_architectures = {"gemma3"},
    .hf_names = gemma_names(),
    .hf_defaults =
        R"({"tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4096, "query_pre_attn_scalar": 256,
                       "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_gemma_hf(fields, c);
          c.attention_softcap = 0.0F;
          c.qk_norm = QkNorm::each_head;
          if (fields.get_bool("use_bidirectional_attention").value_or(false)) {
            fail("field 'use_bidirectional_attention': true is not supported");
          }
          read_window_pattern(fields, c, 6);
          if (!c.local_rope) {
            c.local_rope = RopeConfig{.theta = fields.require_number("rope_local_base_freq"),
                                      .rotary_dim = c.rope.rotary_dim};
          }
          use_local_rope(c);
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gemma(c);
          c.activation = plan::Activation::gelu_tanh;
          c.qk_norm = QkNorm::each_head;
          // The file does not say it: the 27B model divides by hidden_size / num_heads.
          if (c.num_layers == 62) {
            c.attention_scale = 1.0F / std::sqrt(static_cast<float>(c.hidden_size) /
                                                 static_cast<float>(c.num_heads));
          }
          c.logit_softcap =
              static_cast<float>(fields.get_number("final_logit_softcapping").value_or(0.0));
          read_window_pattern(fields, c, 6);
          c.local_rope =
              RopeConfig{.theta = fields.get_number("rope.freq_base_swa").value_or(10000.0),
                         .rotary_dim = c.rope.rotary_dim};
          use_local_rope(c);
        },
};

}  // namespace wisp::model
