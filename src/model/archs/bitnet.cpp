// BitNet b1.58: llama with norms before o_proj and down_proj and a squared ReLU gate. HF:
// modeling_bitnet.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_bitnet(ModelConfig& c) { c.sub_norms = true; }

}  // namespace

const Arch kBitNet = {
    .name = "bitnet",
    .hf_model_types = {"bitnet"},
    .gguf_architectures = {},
    .windows = false,
    .hf_defaults = R"({"hidden_act": "relu2", "rms_norm_eps": 1e-5, "rope_theta": 500000.0})",
    .from_hf = [](const JsonFields&, ModelConfig& c) { read_bitnet(c); },
};

}  // namespace wisp::model
