// Nemotron and Minitron: layer norms whose weights are stored less 1, squared ReLU without a gate.
// HF: modeling_nemotron.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_nemotron(ModelConfig& c) {
  c.norm = plan::NormKind::layer;
  c.gated_ffn = false;
}

}  // namespace

const Arch kNemotron = {
    .name = "nemotron",
    .hf_model_types = {"nemotron"},
    .gguf_architectures = {"nemotron"},
    .windows = false,
    .hf_defaults = R"({"hidden_act": "relu2", "norm_eps": 1e-5, "partial_rotary_factor": 0.5})",
    .from_hf =
        [](const JsonFields&, ModelConfig& c) {
          read_nemotron(c);
          c.norm_weight_offset = 1.0F;
        },
    .from_gguf =
        [](const GgufFields&, ModelConfig& c) {
          read_nemotron(c);
          c.activation = plan::Activation::relu_squared;
        },
};

}  // namespace wisp::model
