// Phi 3, 3.5 and 4: llama with stacked projections, a window in some, longrope in the long ones.
// HF: modeling_phi3.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_phi3(ModelConfig& c) {
  c.qkv_layout = QkvLayout::stacked;
  c.fused_gate_up = true;
  c.rope.factor = static_cast<double>(c.max_position_embeddings) / c.rope.original_context;
}

}  // namespace

const Arch kPhi3 = {
    .name = "phi3",
    .hf_model_types = {"phi3"},
    .gguf_architectures = {"phi3"},
    .hf_defaults = R"({"rms_norm_eps": 1e-5, "original_max_position_embeddings": 4096})",
    .from_hf = [](const JsonFields&, ModelConfig& c) { read_phi3(c); },
    .from_gguf = [](const GgufFields&, ModelConfig& c) { read_phi3(c); },
};

}  // namespace wisp::model
