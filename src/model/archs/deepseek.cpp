// DeepSeek V2 and V3: latent attention, experts chosen from groups, beside a shared network. HF:
// modeling_deepseek_v2.py, modeling_deepseek_v3.py.
#include <cmath>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/rope.h"

namespace wisp::model {
namespace {

void finish(ModelConfig& c, const LatentConfig& latent, uint32_t dense_layers) {
  const uint32_t head_dim = latent.nope_dim + latent.rope_dim;
  c.latent = latent;
  c.rope.rotary_dim = latent.rope_dim;
  c.rope.style = plan::RopeStyle::interleaved;
  // Of a stretched context the scores' scale has mscale twice.
  const double mscale = c.rope.scaling == RopeScaling::yarn
                            ? yarn_mscale(c.rope.factor, c.rope.mscale_all_dim.value_or(0.0))
                            : 1.0;
  c.attention_scale =
      static_cast<float>(mscale * mscale / std::sqrt(static_cast<double>(head_dim)));
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    LayerConfig& layer = c.layers[i];
    layer.head_dim = head_dim;
    layer.num_kv_heads = c.num_heads;
    layer.experts = i >= dense_layers;
  }
}

void read_hf(const JsonFields& fields, ModelConfig& c) {
  read_hf_experts(fields, c);
  ExpertsConfig& e = *c.experts;
  e.shared_intermediate_size =
      e.intermediate_size * fields.get_uint("n_shared_experts").value_or(0);
  e.scale = static_cast<float>(fields.get_number("routed_scaling_factor").value_or(1.0));
  if (fields.get_uint("moe_layer_freq").value_or(1) != 1) {
    fail("field 'moe_layer_freq': {} is not supported", *fields.get_uint("moe_layer_freq"));
  }
  finish(c,
         {.q_rank = fields.get_uint("q_lora_rank").value_or(0),
          .kv_rank = fields.require_uint("kv_lora_rank"),
          .nope_dim = fields.require_uint("qk_nope_head_dim"),
          .rope_dim = fields.require_uint("qk_rope_head_dim"),
          .value_dim = fields.require_uint("v_head_dim")},
         fields.get_uint("first_k_dense_replace").value_or(0));
}

void read_groups(const JsonFields& fields, ExpertsConfig& e) {
  e.num_groups = fields.get_uint("n_group").value_or(1);
  e.top_groups = fields.get_uint("topk_group").value_or(1);
}

// One architecture for both; a gating function of 2 is the sigmoid.
void read_gguf(const GgufFields& fields, ModelConfig& c) {
  const uint32_t rope_dim = fields.require_uint("rope.dimension_count");
  const uint32_t kv_rank = fields.require_uint("attention.kv_lora_rank");
  const bool merged = fields.get_uint("attention.key_length_mla").has_value();
  const uint32_t head_dim = fields.get_uint("attention.key_length_mla")
                                .value_or(fields.get_uint("attention.key_length").value_or(0));
  const uint32_t value_dim =
      fields.get_uint(merged ? "attention.value_length_mla" : "attention.value_length").value_or(0);
  if (head_dim <= rope_dim) fail("{}.attention.key_length_mla is {}", fields.arch(), head_dim);
  read_gguf_experts(fields, c);
  ExpertsConfig& e = *c.experts;
  e.shared_intermediate_size =
      e.intermediate_size * fields.get_uint("expert_shared_count").value_or(0);
  const uint32_t gating = fields.get_uint("expert_gating_func").value_or(0);
  if (gating > 2) fail("{}.expert_gating_func: {} is not supported", fields.arch(), gating);
  if (gating == 2) {
    e.score = plan::RouterScore::sigmoid;
    e.group_score = plan::GroupScore::best_two;
    e.correction_bias = true;
  }
  e.num_groups = fields.get_uint("expert_group_count").value_or(1);
  e.top_groups = fields.get_uint("expert_group_used_count").value_or(1);
  // A tenth of mscale_all_dim; with the usual mscale of 1 the rotation itself stays unscaled.
  if (const auto log = fields.get_number("rope.scaling.yarn_log_multiplier")) {
    c.rope.mscale_all_dim = *log * 10.0;
    c.rope.mscale = c.rope.mscale_all_dim;
  }
  finish(c,
         {.q_rank = fields.get_uint("attention.q_lora_rank").value_or(0),
          .kv_rank = kv_rank,
          .nope_dim = head_dim - rope_dim,
          .rope_dim = rope_dim,
          .value_dim = value_dim},
         fields.get_uint("leading_dense_block_count").value_or(0));
}

// A field that has to be as the family is, where it is given.
void refuse_other(const JsonFields& fields, std::string_view key, std::string_view value) {
  const std::string given = fields.get_string(key).value_or(std::string(value));
  if (given != value) fail("field '{}': '{}' is not supported", key, given);
}

const std::vector<RoleName> kNames = {
    {Role::shared_gate, "model.layers.{}.mlp.shared_experts.gate_proj"},
    {Role::shared_up, "model.layers.{}.mlp.shared_experts.up_proj"},
    {Role::shared_down, "model.layers.{}.mlp.shared_experts.down_proj"}};

}  // namespace

const Arch kDeepSeekV2 = {
    .name = "deepseek_v2",
    .hf_model_types = {"deepseek_v2"},
    .gguf_architectures = {},
    .hf_names = kNames,
    .windows = false,
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hf(fields, c);
          c.experts->normalise = false;
          read_groups(fields, *c.experts);
          refuse_other(fields, "scoring_func", "softmax");
          const std::string method = fields.get_string("topk_method").value_or("greedy");
          if (method == "greedy") {
            c.experts->num_groups = c.experts->top_groups = 1;
          } else if (method != "group_limited_greedy") {
            fail("field 'topk_method': '{}' is not supported", method);
          }
        },
};

const Arch kDeepSeekV3 = {
    .name = "deepseek_v3",
    .hf_model_types = {"deepseek_v3"},
    .gguf_architectures = {"deepseek2"},
    .hf_names = kNames,
    .windows = false,
    .hf_defaults =
        R"({"norm_topk_prob": true, "routed_scaling_factor": 2.5, "rope_interleave": true})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hf(fields, c);
          read_groups(fields, *c.experts);
          c.experts->score = plan::RouterScore::sigmoid;
          c.experts->group_score = plan::GroupScore::best_two;
          c.experts->correction_bias = true;
          if (!*fields.get_bool("rope_interleave")) c.rope.style = plan::RopeStyle::half;
          refuse_other(fields, "topk_method", "noaux_tc");
          refuse_other(fields, "scoring_func", "sigmoid");
        },
    .from_gguf = read_gguf,
};

}  // namespace wisp::model
