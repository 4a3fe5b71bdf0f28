// Mamba and Mamba-2: layers of a selective scan alone. HF: modeling_mamba.py, modeling_mamba2.py.
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

constexpr uint32_t kPositions = 1 << 20;  // nothing limits them; what llama.cpp writes

void scan_alone(ModelConfig& c) {
  c.max_position_embeddings = kPositions;
  for (LayerConfig& layer : c.layers) {
    set_mixer(layer, Mixer::scan);
    layer.network = false;
  }
}

void read_limits(const JsonFields& fields, ScanConfig& s) {
  const std::vector<double> limits = fields.get_limits("time_step_limit");
  if (limits.empty()) return;
  s.dt_min = static_cast<float>(limits[0]);
  s.dt_max = static_cast<float>(limits[1]);
}

// The time step's range and start are for training.
void read_hf(const JsonFields& fields, ModelConfig& c) {
  expect_silu(c);
  scan_alone(c);
  ScanConfig& s = c.scan.emplace();
  s.state_size = fields.require_uint("state_size");
  s.inner_size = checked_cast<uint32_t>(uint64_t{fields.require_uint("expand")} * c.hidden_size,
                                        "field 'expand' times hidden_size");
  c.conv_taps = fields.require_uint("conv_kernel");
  c.conv_bias = fields.get_bool("use_conv_bias").value_or(true);
  c.scan_bias = fields.get_bool("use_bias").value_or(false);
  fields.pass_over({"rescale_prenorm_residual", "residual_in_fp32", "time_step_floor",
                    "time_step_init_scheme", "time_step_max", "time_step_min", "time_step_scale",
                    "use_associative_scan", "use_mambapy", "intermediate_size", "d_inner",
                    "d_model", "n_layer", "ssm_cfg", "rms_norm", "fused_add_norm",
                    "pad_vocab_size_multiple", "chunk_size"});
}

std::vector<RoleName> hf_names(bool ranked) {
  std::vector<RoleName> names = backbone_names();
  if (ranked) names.push_back({Role::scan_dt_bias, "backbone.layers.{}.mixer.dt_proj.bias"});
  return names;
}

}  // namespace

void read_ssm(const GgufFields& fields, ModelConfig& c) {
  ScanConfig& s = c.scan.emplace();
  s.inner_size = fields.require_uint("ssm.inner_size");
  s.state_size = fields.require_uint("ssm.state_size");
  s.num_heads = fields.require_uint("ssm.time_step_rank");
  s.num_groups = fields.get_uint("ssm.group_count").value_or(1);
  s.norm_group = s.inner_size / std::max(1U, s.num_groups);
  c.conv_taps = fields.require_uint("ssm.conv_kernel");
}

std::vector<RoleName> backbone_names() {
  return {{Role::token_embedding, "backbone.embeddings"},
          {Role::token_embedding, "backbone.embedding"},
          {Role::output_norm, "backbone.norm_f"},
          {Role::attention_norm, "backbone.layers.{}.norm"},
          {Role::ffn_norm, "backbone.layers.{}.norm"},
          {Role::mixer_in_proj, "backbone.layers.{}.mixer.in_proj"},
          {Role::mixer_conv, "backbone.layers.{}.mixer.conv1d"},
          {Role::mixer_out_proj, "backbone.layers.{}.mixer.out_proj"}};
}

std::vector<RoleName> ssm_names() {
  return {{Role::mixer_in_proj, "blk.{}.ssm_in"},
          {Role::mixer_conv, "blk.{}.ssm_conv1d"},
          {Role::mixer_out_proj, "blk.{}.ssm_out"},
          {Role::ffn_norm, "blk.{}.attn_norm"}};
}

const Arch kMamba = {
    .name = "mamba",
    .hf_model_types = {"mamba"},
    .gguf_architectures = {"mamba"},
    .hf_names = hf_names(true),
    .gguf_names = ssm_names(),
    .attention = false,
    .hf_defaults = R"({"tie_word_embeddings": true, "layer_norm_epsilon": 1e-5, "expand": 2,
                       "conv_kernel": 4, "state_size": 16})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hf(fields, c);
          c.scan->num_heads = c.scan->inner_size;
          const bool given =
              fields.has("time_step_rank") && fields.find("time_step_rank")->is_number();
          c.scan->dt_rank =
              given ? fields.require_uint("time_step_rank") : (c.hidden_size + 15) / 16;
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          scan_alone(c);
          read_ssm(fields, c);
          c.scan->dt_rank = c.scan->num_heads;
          c.scan->num_heads = c.scan->inner_size;
          c.scan->norm_group = 0;
          if (fields.get_bool("ssm.dt_b_c_rms").value_or(false)) {
            fail("{}.ssm.dt_b_c_rms is not supported", fields.arch());
          }
        },
};

// Files of llama.cpp have norms of groups, as the first implementation did; transformers has one of
// all.
const Arch kMamba2 = {
    .name = "mamba2",
    .hf_model_types = {"mamba2"},
    .gguf_architectures = {"mamba2"},
    .hf_names = hf_names(false),
    .gguf_names = ssm_names(),
    .attention = false,
    .hf_defaults = R"({"layer_norm_epsilon": 1e-5, "expand": 2, "conv_kernel": 4, "state_size": 128,
                       "num_heads": 128, "head_dim": 64, "n_groups": 8})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hf(fields, c);
          fields.pass_over({"time_step_rank"});
          ScanConfig& s = *c.scan;
          read_limits(fields, s);
          s.num_heads = fields.require_uint("num_heads");
          s.num_groups = fields.require_uint("n_groups");
          s.norm_group = s.inner_size;
          if (uint64_t{s.num_heads} * fields.require_uint("head_dim") != s.inner_size) {
            fail("field 'num_heads': {} heads of {} are not {} channels", s.num_heads,
                 fields.require_uint("head_dim"), s.inner_size);
          }
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          scan_alone(c);
          read_ssm(fields, c);
        },
};

}  // namespace wisp::model
