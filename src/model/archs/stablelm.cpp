// StableLM: llama with layer norms, part of each head rotates. HF: modeling_stablelm.py.
#include "model/archs/families.h"

namespace wisp::model {

const Arch kStableLm = {
    .name = "stablelm",
    .hf_model_types = {"stablelm"},
    .gguf_architectures = {"stablelm"},
    .hf_names = {{Role::q_norm, "model.layers.{}.self_attn.q_layernorm"},
                 {Role::k_norm, "model.layers.{}.self_attn.k_layernorm"}},
    .windows = false,
    .hf_defaults = R"({"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          c.norm = plan::NormKind::layer;
          c.qkv_bias = fields.get_bool("use_qkv_bias");
          if (fields.get_bool("use_parallel_residual").value_or(false)) {
            c.residual = Residual::parallel_shared;
          }
          if (fields.get_bool("qk_layernorm").value_or(false)) c.qk_norm = QkNorm::own_heads;
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          c.norm = plan::NormKind::layer;
          if (fields.get_bool("use_parallel_residual").value_or(false)) {
            c.residual = Residual::parallel_shared;
            c.qk_norm = QkNorm::own_heads;
          }
        },
};

}  // namespace wisp::model
