// Qwen 2 and 2.5: llama with biases on q, k and v. HF: modeling_qwen2.py.
#include "model/archs/families.h"

namespace wisp::model {

void read_qwen_windows(const JsonFields& fields, ModelConfig& c) {
  const bool sliding = fields.get_bool("use_sliding_window").value_or(false);
  if (fields.has("layer_types") && sliding) return;
  const uint32_t full = fields.get_uint("max_window_layers").value_or(28);
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    if (!sliding || i < full) c.layers[i].window = 0;
  }
}

const Arch kQwen2 = {
    .name = "qwen2",
    .hf_model_types = {"qwen2"},
    .gguf_architectures = {"qwen2"},
    .from_hf = read_qwen_windows,
};

}  // namespace wisp::model
