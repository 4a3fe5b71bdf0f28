// Granite 3, dense: llama with four multipliers. HF: modeling_granite.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

float reciprocal(double divisor) { return static_cast<float>(1.0 / divisor); }

}  // namespace

const Arch kGranite = {
    .name = "granite",
    .hf_model_types = {"granite"},
    .gguf_architectures = {"granite"},
    .windows = false,
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          const auto number = [&](std::string_view key) {
            return fields.get_number(key).value_or(1.0);
          };
          c.embedding_scale = static_cast<float>(number("embedding_multiplier"));
          c.attention_scale = static_cast<float>(number("attention_multiplier"));
          c.residual_scale = static_cast<float>(number("residual_multiplier"));
          c.logit_scale = reciprocal(number("logits_scaling"));
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          const auto number = [&](std::string_view key) {
            return fields.get_number(key).value_or(1.0);
          };
          c.rope.style = plan::RopeStyle::interleaved;
          c.embedding_scale = static_cast<float>(number("embedding_scale"));
          c.residual_scale = static_cast<float>(number("residual_scale"));
          c.logit_scale = reciprocal(number("logit_scale"));
        },
};

}  // namespace wisp::model
