// Qwen 1.5 and 2 with experts, beside a shared network behind a gate. HF: modeling_qwen2_moe.py.
#include "model/archs/families.h"

namespace wisp::model {

void read_qwen_experts(const JsonFields& fields, ModelConfig& c) {
  read_hf_experts(fields, c);
  const uint32_t step = fields.get_uint("decoder_sparse_step").value_or(1);
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    c.layers[i].experts = step != 0 && (i + 1) % step == 0;
  }
  for (const uint32_t layer : fields.get_uints("mlp_only_layers")) {
    if (layer < c.num_layers) c.layers[layer].experts = false;
  }
}

const Arch kQwen2Moe = {
    .name = "qwen2_moe",
    .hf_model_types = {"qwen2_moe"},
    .gguf_architectures = {"qwen2moe"},
    .hf_defaults = R"({"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
                       "shared_expert_intermediate_size": 5632})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_qwen_windows(fields, c);
          c.qkv_bias = fields.get_bool("qkv_bias");
          read_qwen_experts(fields, c);
          c.experts->shared_intermediate_size =
              fields.require_uint("shared_expert_intermediate_size");
          c.experts->shared_gate = true;
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gguf_experts(fields, c);
          c.experts->shared_intermediate_size =
              fields.get_uint("expert_shared_feed_forward_length")
                  .value_or(fields.require_uint("feed_forward_length"));
          c.experts->shared_gate = true;
        },
};

}  // namespace wisp::model
