// Qwen 3, dense: llama with an RMS norm on each head of q and k. HF: modeling_qwen3.py.
#include "model/archs/families.h"

namespace wisp::model {

const Arch kQwen3 = {
    .name = "qwen3",
    .hf_model_types = {"qwen3"},
    .gguf_architectures = {"qwen3"},
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_qwen_windows(fields, c);
          c.qk_norm = QkNorm::each_head;
        },
    .from_gguf = [](const GgufFields&, ModelConfig& c) { c.qk_norm = QkNorm::each_head; },
};

}  // namespace wisp::model
