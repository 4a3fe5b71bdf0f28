// Command R and Command A: attention and network side by side on one layer norm without bias,
// scaled logits. HF: modeling_cohere.py, modeling_cohere2.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_cohere(ModelConfig& c) {
  c.norm = plan::NormKind::layer;
  c.residual = Residual::parallel_shared;
  c.rope.style = plan::RopeStyle::interleaved;
}

float logit_scale(std::optional<double> value) {
  return static_cast<float>(value.value_or(0.0625));
}

}  // namespace

const Arch kCohere = {
    .name = "cohere",
    .hf_model_types = {"cohere"},
    .gguf_architectures = {"command-r"},
    .windows = false,
    .hf_defaults = R"({"tie_word_embeddings": true, "layer_norm_eps": 1e-5})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_cohere(c);
          c.logit_scale = logit_scale(fields.get_number("logit_scale"));
          if (fields.get_bool("use_qk_norm").value_or(false)) c.qk_norm = QkNorm::own_heads;
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_cohere(c);
          c.logit_scale = logit_scale(fields.get_number("logit_scale"));
          if (c.num_layers >= 64) c.qk_norm = QkNorm::own_heads;  // Command R+
        },
};

const Arch kCohere2 = {
    .name = "cohere2",
    .hf_model_types = {"cohere2"},
    .gguf_architectures = {"cohere2"},
    .hf_defaults =
        R"({"tie_word_embeddings": true, "layer_norm_eps": 1e-5, "sliding_window": 4096})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_cohere(c);
          c.logit_scale = logit_scale(fields.get_number("logit_scale"));
          read_window_pattern(fields, c, 4);
          drop_rope_without_window(c);
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_cohere(c);
          c.logit_scale = logit_scale(fields.get_number("logit_scale"));
          read_window_pattern(fields, c, 4);
          drop_rope_without_window(c);
        },
};

}  // namespace wisp::model
