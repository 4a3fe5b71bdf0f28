// OLMoE: llama with experts and norms over all heads of q and of k. HF: modeling_olmoe.py.
#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {

const Arch kOlmoe = {
    .name = "olmoe",
    .hf_model_types = {"olmoe"},
    .gguf_architectures = {"olmoe"},
    .windows = false,
    .hf_defaults = R"({"num_experts": 64, "num_experts_per_tok": 8, "rms_norm_eps": 1e-5})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hf_experts(fields, c);
          c.qk_norm = QkNorm::all_heads;
          if (fields.has("clip_qkv")) fail("field 'clip_qkv' is not supported");
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gguf_experts(fields, c);
          c.qk_norm = QkNorm::all_heads;
        },
};

}  // namespace wisp::model
