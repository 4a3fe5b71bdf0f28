// GLM 4: norms around attention and network, half of each head rotates, neighbours together. HF:
// modeling_glm4.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_glm4(ModelConfig& c) {
  c.post_norms = true;
  c.fused_gate_up = true;
  c.rope.style = plan::RopeStyle::interleaved;
}

}  // namespace

const Arch kGlm4 = {
    .name = "glm4",
    .hf_model_types = {"glm4"},
    .gguf_architectures = {"glm4"},
    .hf_names = {{Role::attention_post_norm, "model.layers.{}.post_self_attn_layernorm"},
                 {Role::ffn_post_norm, "model.layers.{}.post_mlp_layernorm"}},
    .windows = false,
    .hf_defaults = R"({"rms_norm_eps": 1.5625e-7, "partial_rotary_factor": 0.5})",
    .from_hf =
        [](const JsonFields&, ModelConfig& c) {
          read_glm4(c);
          c.o_bias = {};  // attention_bias is not about it
        },
    .from_gguf = [](const GgufFields&, ModelConfig& c) { read_glm4(c); },
};

}  // namespace wisp::model
