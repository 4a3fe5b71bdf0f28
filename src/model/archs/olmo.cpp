// OLMo 1: llama with layer norms that have no weights, and clipped q, k and v. HF:
// modeling_olmo.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_olmo(ModelConfig& c) {
  c.norm = plan::NormKind::layer;
  c.norm_weights = false;
  c.norm_eps = 1e-5F;
}

}  // namespace

const Arch kOlmo = {
    .name = "olmo",
    .hf_model_types = {"olmo"},
    .gguf_architectures = {"olmo"},
    .windows = false,
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_olmo(c);
          c.qkv_clip = static_cast<float>(fields.get_number("clip_qkv").value_or(0.0));
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_olmo(c);
          c.rope.style = plan::RopeStyle::interleaved;
          c.qkv_clip = static_cast<float>(fields.get_number("attention.clamp_kqv").value_or(0.0));
        },
};

}  // namespace wisp::model
