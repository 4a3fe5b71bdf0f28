// GPT-2: learned positions, layer norms, biases, no gate. HF: modeling_gpt2.py, whose projections
// are stored [inputs, outputs].
#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_gpt2(ModelConfig& c) {
  c.norm = plan::NormKind::layer;
  c.qkv_layout = QkvLayout::stacked;
  c.gated_ffn = false;
  c.activation = plan::Activation::gelu_tanh;
  c.learned_positions = true;
  for (LayerConfig& layer : c.layers) layer.rope = LayerRope::none;
}

}  // namespace

const Arch kGpt2 = {
    .name = "gpt2",
    .hf_model_types = {"gpt2"},
    .gguf_architectures = {"gpt2"},
    .hf_names = {{Role::token_embedding, "transformer.wte"},
                 {Role::position_embedding, "transformer.wpe"},
                 {Role::output_norm, "transformer.ln_f"},
                 {Role::attention_norm, "transformer.h.{}.ln_1"},
                 {Role::qkv_proj, "transformer.h.{}.attn.c_attn"},
                 {Role::o_proj, "transformer.h.{}.attn.c_proj"},
                 {Role::ffn_norm, "transformer.h.{}.ln_2"},
                 {Role::up_proj, "transformer.h.{}.mlp.c_fc"},
                 {Role::down_proj, "transformer.h.{}.mlp.c_proj"}},
    .windows = false,
    .hf_defaults = R"({"tie_word_embeddings": true, "layer_norm_epsilon": 1e-5, "n_positions": 1024,
                       "activation_function": "gelu_new"})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          const plan::Activation activation = c.activation;
          read_gpt2(c);
          c.activation = activation;
          c.transposed = true;
          default_ffn_size(c, 4 * c.hidden_size);
          if (!fields.get_bool("scale_attn_weights").value_or(true)) c.attention_scale = 1.0F;
          if (fields.get_bool("scale_attn_by_inverse_layer_idx").value_or(false)) {
            fail("field 'scale_attn_by_inverse_layer_idx': true is not supported");
          }
        },
    .from_gguf = [](const GgufFields&, ModelConfig& c) { read_gpt2(c); },
};

}  // namespace wisp::model
