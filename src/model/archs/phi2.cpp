// Phi 1, 1.5 and 2: attention and network side by side on one layer norm, biases everywhere, part
// of each head rotates. HF: modeling_phi.py.
#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_phi(ModelConfig& c) {
  c.norm = plan::NormKind::layer;
  c.residual = Residual::parallel_shared;
  c.gated_ffn = false;
  c.activation = plan::Activation::gelu_tanh;
}

}  // namespace

const Arch kPhi2 = {
    .name = "phi2",
    .hf_model_types = {"phi"},
    .gguf_architectures = {"phi2"},
    .hf_names = {{Role::output_norm, "model.final_layernorm"},
                 {Role::o_proj, "model.layers.{}.self_attn.dense"},
                 {Role::up_proj, "model.layers.{}.mlp.fc1"},
                 {Role::down_proj, "model.layers.{}.mlp.fc2"}},
    .windows = false,
    .hf_defaults =
        R"({"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "hidden_act": "gelu_new"})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          const plan::Activation activation = c.activation;
          read_phi(c);
          c.activation = activation;
          if (fields.get_bool("qk_layernorm").value_or(false)) {
            fail("field 'qk_layernorm': true is not supported");
          }
        },
    .from_gguf =
        [](const GgufFields&, ModelConfig& c) {
          read_phi(c);
          c.qkv_layout = QkvLayout::stacked;
        },
};

}  // namespace wisp::model
