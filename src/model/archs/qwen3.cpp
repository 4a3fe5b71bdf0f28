// Qwen 3, dense and with experts: llama with an RMS norm on each head of q and k. HF:
// modeling_qwen3.py, modeling_qwen3_moe.py.
#include "base/error.h"
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

const Arch kQwen3Moe = {
    .name = "qwen3_moe",
    .hf_model_types = {"qwen3_moe"},
    .gguf_architectures = {"qwen3moe"},
    .hf_defaults = R"({"num_experts_per_tok": 8, "moe_intermediate_size": 768})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_qwen_experts(fields, c);
          // All layers have the window, or none.
          if (!fields.get_bool("use_sliding_window").value_or(false)) {
            for (LayerConfig& layer : c.layers) layer.window = 0;
          }
          if (!fields.get_bool("use_qk_norm").value_or(true)) {
            fail("field 'use_qk_norm': false is not supported");
          }
          c.qk_norm = QkNorm::each_head;
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gguf_experts(fields, c);
          c.experts->normalise = true;
          c.qk_norm = QkNorm::each_head;
        },
};

}  // namespace wisp::model
