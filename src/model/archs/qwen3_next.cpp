// Qwen 3-Next and 3.5, dense and with experts: Gated DeltaNet, every few layers attention whose
// results are gated. HF: modeling_qwen3_next.py, modeling_qwen3_5.py, modeling_qwen3_5_moe.py.
#include <algorithm>

#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

// Where there are no layer_types, every full_attention_interval-th layer attends.
void read_hf(const JsonFields& fields, ModelConfig& c) {
  expect_silu(c);
  c.qk_norm = QkNorm::each_head;
  c.output_gate = true;
  c.norm_weight_offset = 1.0F;
  c.conv_taps = fields.require_uint("linear_conv_kernel_dim");
  c.delta_net = {.num_heads = fields.require_uint("linear_num_value_heads"),
                 .num_key_heads = fields.require_uint("linear_num_key_heads"),
                 .key_dim = fields.require_uint("linear_key_head_dim"),
                 .value_dim = fields.require_uint("linear_value_head_dim")};
  const uint32_t interval = fields.get_uint("full_attention_interval").value_or(4);
  if (!fields.get_bool("attn_output_gate").value_or(true)) {
    fail("field 'attn_output_gate': false is not supported");
  }
  // States are float32 always, and nothing drafts.
  fields.pass_over({"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"});
  if (fields.has("layer_types")) return;
  if (interval == 0) fail("field 'full_attention_interval' is 0");
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    if ((i + 1) % interval == 0) continue;
    set_mixer(c.layers[i], Mixer::delta_net);
  }
}

void read_hf_moe(const JsonFields& fields, ModelConfig& c) {
  read_hf(fields, c);
  read_qwen_experts(fields, c);
  c.experts->shared_intermediate_size = fields.require_uint("shared_expert_intermediate_size");
  c.experts->shared_gate = true;
}

// The writer adds 1 to the norms. `tiled`: it puts the heads of one key head apart.
void read_gguf(const GgufFields& fields, ModelConfig& c, bool tiled) {
  c.qk_norm = QkNorm::each_head;
  c.output_gate = true;
  c.conv_taps = fields.require_uint("ssm.conv_kernel");
  DeltaNetConfig& d = c.delta_net.emplace();
  d.key_dim = fields.require_uint("ssm.state_size");
  d.num_key_heads = fields.require_uint("ssm.group_count");
  d.num_heads = fields.require_uint("ssm.time_step_rank");
  const uint32_t values = fields.require_uint("ssm.inner_size");
  d.value_dim = values / std::max(1U, d.num_heads);
  if (d.value_dim * d.num_heads != values) {
    fail("metadata key '{}.ssm.inner_size' is {}, of {} heads", fields.arch(), values, d.num_heads);
  }
  d.tiled = tiled;
  c.rope.interleaved_sections = tiled;  // Qwen 3.5
  const std::vector<bool>* recurrent = fields.find_bools("attention.recurrent_layers");
  const std::vector<bool> pattern = fields.get_pattern("full_attention_interval", c.num_layers, 4);
  if (recurrent != nullptr && recurrent->size() != c.num_layers &&
      recurrent->size() != uint64_t{c.num_layers} + c.num_extra_layers) {
    fail("metadata key '{}.attention.recurrent_layers' has {} values, expected {}", fields.arch(),
         recurrent->size(), c.num_layers);
  }
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    if (!(recurrent != nullptr ? *recurrent : pattern)[i]) continue;
    set_mixer(c.layers[i], Mixer::delta_net);
  }
}

void read_gguf_moe(const GgufFields& fields, ModelConfig& c) {
  read_gguf_experts(fields, c);
  c.experts->normalise = true;
  c.experts->shared_intermediate_size = fields.require_uint("expert_shared_feed_forward_length");
  c.experts->shared_gate = true;
}

std::vector<RoleName> hf_names() {
  return {{Role::mixer_conv, "model.layers.{}.linear_attn.conv1d"},
          {Role::mixer_out_proj, "model.layers.{}.linear_attn.out_proj"}};
}

std::vector<RoleName> gguf_names() {
  return {{Role::mixer_conv, "blk.{}.ssm_conv1d"},
          {Role::mixer_out_proj, "blk.{}.ssm_out"},
          {Role::ffn_norm, "blk.{}.post_attention_norm"}};
}

constexpr std::string_view kDense =
    R"({"partial_rotary_factor": 0.25, "head_dim": 256, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32})";
constexpr std::string_view kExperts =
    R"({"partial_rotary_factor": 0.25, "head_dim": 256, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "norm_topk_prob": true,
    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 256,
    "num_experts_per_tok": 8})";
constexpr std::string_view kNextExperts =
    R"({"partial_rotary_factor": 0.25, "head_dim": 256, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "norm_topk_prob": true,
    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 512,
    "num_experts_per_tok": 10})";

}  // namespace

const Arch kQwen3Next = {
    .name = "qwen3_next",
    .hf_model_types = {"qwen3_next"},
    .gguf_architectures = {"qwen3next"},
    .hf_names = hf_names(),
    .gguf_names = gguf_names(),
    .windows = false,
    .hf_defaults = kNextExperts,
    .from_hf = read_hf_moe,
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gguf(fields, c, false);
          read_gguf_moe(fields, c);
        },
};

const Arch kQwen35 = {
    .name = "qwen3_5",
    .hf_model_types = {"qwen3_5_text"},
    .gguf_architectures = {"qwen35"},
    .hf_names = hf_names(),
    .gguf_names = gguf_names(),
    .windows = false,
    .hf_defaults = kDense,
    .from_hf = read_hf,
    .from_gguf = [](const GgufFields& fields, ModelConfig& c) { read_gguf(fields, c, true); },
};

const Arch kQwen35Moe = {
    .name = "qwen3_5_moe",
    .hf_model_types = {"qwen3_5_moe_text"},
    .gguf_architectures = {"qwen35moe"},
    .hf_names = hf_names(),
    .gguf_names = gguf_names(),
    .windows = false,
    .hf_defaults = kExperts,
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hf_moe(fields, c);
          if (!c.experts->normalise) fail("field 'norm_topk_prob': false is not supported");
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_gguf(fields, c, true);
          read_gguf_moe(fields, c);
        },
};

}  // namespace wisp::model
