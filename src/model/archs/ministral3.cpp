// Ministral 3: mistral with YaRN and queries scaled by position. HF: modeling_ministral3.py; GGUF:
// mistral3.
#include "model/archs/families.h"

namespace wisp::model {

const Arch kMinistral3 = {
    .name = "ministral3",
    .hf_model_types = {"ministral3"},
    .gguf_architectures = {"mistral3"},
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          const auto* rope = fields.find_object("rope_parameters");
          if (rope == nullptr) return;
          c.query_scale_beta =
              static_cast<float>(rope->get_number("llama_4_scaling_beta").value_or(0.0));
          c.query_scale_context = c.rope.original_context;
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          c.rope.style = plan::RopeStyle::interleaved;
          c.query_scale_beta =
              static_cast<float>(fields.get_number("attention.temperature_scale").value_or(0.0));
          c.query_scale_context = c.rope.original_context;
          // One number stands for mscale and mscale_all_dim.
          c.rope.mscale_all_dim = fields.get_number("rope.scaling.yarn_log_multiplier");
          if (c.rope.mscale_all_dim) c.rope.mscale = 1.0;
        },
};

}  // namespace wisp::model
