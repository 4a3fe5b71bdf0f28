// Mixtral: mistral with experts. HF: modeling_mixtral.py. GGUF files call themselves llama.
#include "model/archs/families.h"

namespace wisp::model {

const Arch kMixtral = {
    .name = "mixtral",
    .hf_model_types = {"mixtral"},
    .gguf_architectures = {},
    .hf_names = {{Role::router, "model.layers.{}.block_sparse_moe.gate"},
                 {Role::expert_gate, "model.layers.{}.block_sparse_moe.experts.{}.w1"},
                 {Role::expert_up, "model.layers.{}.block_sparse_moe.experts.{}.w3"},
                 {Role::expert_down, "model.layers.{}.block_sparse_moe.experts.{}.w2"}},
    .hf_defaults =
        R"({"num_local_experts": 8, "num_experts_per_tok": 2, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hf_experts(fields, c);
          c.experts->normalise = true;
        },
};

}  // namespace wisp::model
