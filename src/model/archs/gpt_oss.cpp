// GPT-OSS: experts with clamped gates, biases everywhere, attention sinks, a window in every other
// layer. HF: modeling_gpt_oss.py.
#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

void read_gpt_oss(ModelConfig& c) {
  c.activation = plan::Activation::silu;
  c.attention_sinks = true;
  c.glu_alpha = 1.702F;
  c.glu_limit = 7.0F;
  c.glu_up_offset = 1.0F;
  c.experts->normalise = true;  // the softmax is over the chosen ones
}

}  // namespace

const Arch kGptOss = {
    .name = "gpt_oss",
    .hf_model_types = {"gpt_oss"},
    .gguf_architectures = {"gpt-oss"},
    .hf_names = {{Role::router, "model.layers.{}.mlp.router"},
                 {Role::expert_down, "model.layers.{}.mlp.experts.down_proj"}},
    .gguf_names = {{Role::ffn_norm, "blk.{}.post_attention_norm"}},
    .hf_defaults =
        R"({"num_local_experts": 128, "num_experts_per_tok": 4, "rms_norm_eps": 1e-5, "rope_theta": 150000.0,
                       "sliding_window": 128})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hf_experts(fields, c);
          read_gpt_oss(c);
          c.experts->layout = ExpertLayout::transposed_interleaved;
          c.experts->fused_gate_up = true;
          read_window_pattern(fields, c, 2);
          const double limit = fields.get_number("swiglu_limit").value_or(c.glu_limit);
          if (limit != c.glu_limit) fail("field 'swiglu_limit': {} is not supported", limit);
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gguf_experts(fields, c);
          read_gpt_oss(c);
          read_window_pattern(fields, c, 2);
          c.rope.truncate = false;  // which GGUF cannot say
        },
};

}  // namespace wisp::model
