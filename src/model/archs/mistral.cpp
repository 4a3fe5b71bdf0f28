// Mistral 7B and its successors: llama with a sliding window in some and heads wider than
// hidden_size / num_heads in others. HF: modeling_mistral.py. GGUF files call themselves llama.
#include "model/archs/families.h"

namespace wisp::model {

const Arch kMistral = {
    .name = "mistral",
    .hf_model_types = {"mistral"},
    .gguf_architectures = {},
};

}  // namespace wisp::model
