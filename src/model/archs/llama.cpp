// Llama 1 to 3.x and its many relatives (TinyLlama, SmolLM2, Yi, ...). HF: modeling_llama.py.
#include "model/archs/families.h"

namespace wisp::model {

const Arch kLlama = {
    .name = "llama",
    .hf_model_types = {"llama"},
    .gguf_architectures = {"llama"},
    // The converter reorders the rows of q and k, so that a rotation takes neighbours.
    .windows = false,
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          c.rope.style = plan::RopeStyle::interleaved;
          if (fields.get_uint("expert_count").value_or(0) == 0) return;
          read_gguf_experts(fields, c);  // Mixtral
          c.experts->normalise = true;
        },
};

}  // namespace wisp::model
