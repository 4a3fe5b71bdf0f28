#include "model/tensor_map.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"

namespace wisp::model {
namespace {

struct Row {
  Role role;
  std::string_view hf;
  std::string_view gguf;
};

constexpr std::array<Row, 96> kRows = {{
    {Role::token_embedding, "model.embed_tokens", "token_embd"},
    {Role::position_embedding, "", "position_embd"},
    {Role::output_norm, "model.norm", "output_norm"},
    {Role::lm_head, "lm_head", "output"},
    {Role::rope_factors, "", "rope_freqs"},
    {Role::rope_factors_short, "", "rope_factors_short"},
    {Role::rope_factors_long, "", "rope_factors_long"},
    {Role::attention_norm, "model.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {Role::qkv_proj, "model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"},
    {Role::q_proj, "model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"},
    {Role::k_proj, "model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"},
    {Role::v_proj, "model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"},
    {Role::o_proj, "model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"},
    {Role::q_norm, "model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {Role::k_norm, "model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
    {Role::attention_sub_norm, "model.layers.{}.self_attn.attn_sub_norm", "blk.{}.attn_sub_norm"},
    {Role::attention_post_norm, "", "blk.{}.post_attention_norm"},
    {Role::ffn_norm, "model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {Role::gate_up_proj, "model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"},
    {Role::gate_proj, "model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"},
    {Role::up_proj, "model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"},
    {Role::down_proj, "model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"},
    {Role::ffn_sub_norm, "model.layers.{}.mlp.ffn_sub_norm", "blk.{}.ffn_sub_norm"},
    {Role::ffn_post_norm, "model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
    {Role::attention_sinks, "model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks"},
    {Role::mixer_in_proj, "model.layers.{}.conv.in_proj", "blk.{}.shortconv.in_proj"},
    {Role::mixer_conv, "model.layers.{}.conv.conv", "blk.{}.shortconv.conv"},
    {Role::mixer_out_proj, "model.layers.{}.conv.out_proj", "blk.{}.shortconv.out_proj"},
    {Role::delta_qkvz, "model.layers.{}.linear_attn.in_proj_qkvz", ""},
    {Role::delta_ba, "model.layers.{}.linear_attn.in_proj_ba", "blk.{}.ssm_ba"},
    {Role::delta_qkv, "model.layers.{}.linear_attn.in_proj_qkv", "blk.{}.attn_qkv"},
    {Role::delta_z, "model.layers.{}.linear_attn.in_proj_z", "blk.{}.attn_gate"},
    {Role::delta_b, "model.layers.{}.linear_attn.in_proj_b", "blk.{}.ssm_beta"},
    {Role::delta_a, "model.layers.{}.linear_attn.in_proj_a", "blk.{}.ssm_alpha"},
    {Role::delta_rate, "model.layers.{}.linear_attn.A_log", "blk.{}.ssm_a"},
    {Role::delta_dt_bias, "model.layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias"},
    {Role::delta_norm, "model.layers.{}.linear_attn.norm", "blk.{}.ssm_norm"},
    {Role::scan_x_proj, "backbone.layers.{}.mixer.x_proj", "blk.{}.ssm_x"},
    {Role::scan_dt_proj, "backbone.layers.{}.mixer.dt_proj", "blk.{}.ssm_dt"},
    {Role::scan_rate, "backbone.layers.{}.mixer.A_log", "blk.{}.ssm_a"},
    {Role::scan_dt_bias, "backbone.layers.{}.mixer.dt_bias", "blk.{}.ssm_dt.bias"},
    {Role::scan_skip, "backbone.layers.{}.mixer.D", "blk.{}.ssm_d"},
    {Role::scan_norm, "backbone.layers.{}.mixer.norm", "blk.{}.ssm_norm"},
    {Role::embedding_norm, "rwkv.blocks.0.pre_ln", ""},
    {Role::wkv_key, "rwkv.blocks.{}.attention.key", ""},
    {Role::wkv_value, "rwkv.blocks.{}.attention.value", ""},
    {Role::wkv_receptance, "rwkv.blocks.{}.attention.receptance", ""},
    {Role::wkv_output, "rwkv.blocks.{}.attention.output", ""},
    {Role::wkv_rate, "rwkv.blocks.{}.attention.time_decay", ""},
    {Role::wkv_first, "rwkv.blocks.{}.attention.time_first", ""},
    {Role::wkv_mix_key, "rwkv.blocks.{}.attention.time_mix_key", ""},
    {Role::wkv_mix_value, "rwkv.blocks.{}.attention.time_mix_value", ""},
    {Role::wkv_mix_receptance, "rwkv.blocks.{}.attention.time_mix_receptance", ""},
    {Role::shift_mix_key, "rwkv.blocks.{}.feed_forward.time_mix_key", ""},
    {Role::shift_mix_receptance, "rwkv.blocks.{}.feed_forward.time_mix_receptance", ""},
    {Role::shift_receptance, "rwkv.blocks.{}.feed_forward.receptance", ""},
    {Role::q_a_proj, "model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"},
    {Role::q_a_norm, "model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"},
    {Role::q_b_proj, "model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"},
    {Role::kv_a_proj, "model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {Role::kv_a_norm, "model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
    {Role::kv_b_proj, "model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b"},
    {Role::k_b_proj, "", "blk.{}.attn_k_b"},
    {Role::v_b_proj, "", "blk.{}.attn_v_b"},
    {Role::router, "model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {Role::router_correction, "model.layers.{}.mlp.gate.e_score_correction_bias",
     "blk.{}.exp_probs_b.bias"},
    {Role::expert_gate_up, "model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps"},
    {Role::expert_gate, "model.layers.{}.mlp.experts.{}.gate_proj", "blk.{}.ffn_gate_exps"},
    {Role::expert_up, "model.layers.{}.mlp.experts.{}.up_proj", "blk.{}.ffn_up_exps"},
    {Role::expert_down, "model.layers.{}.mlp.experts.{}.down_proj", "blk.{}.ffn_down_exps"},
    {Role::shared_gate, "model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"},
    {Role::shared_up, "model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"},
    {Role::shared_down, "model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"},
    {Role::shared_expert_gate, "model.layers.{}.mlp.shared_expert_gate",
     "blk.{}.ffn_gate_inp_shexp"},
    {Role::router_norm, "model.layers.{}.router.scale", "blk.{}.ffn_gate_inp.scale"},
    {Role::expert_scales, "model.layers.{}.router.per_expert_scale", "blk.{}.ffn_down_exps.scale"},
    {Role::experts_norm, "model.layers.{}.pre_feedforward_layernorm_2", "blk.{}.pre_ffw_norm_2"},
    {Role::experts_post_norm, "model.layers.{}.post_feedforward_layernorm_2",
     "blk.{}.post_ffw_norm_2"},
    {Role::network_post_norm, "model.layers.{}.post_feedforward_layernorm_1",
     "blk.{}.post_ffw_norm_1"},
    {Role::layer_scale, "model.layers.{}.layer_scalar", "blk.{}.layer_output_scale"},
    {Role::per_layer_embedding, "model.embed_tokens_per_layer", "per_layer_token_embd"},
    {Role::per_layer_model_proj, "model.per_layer_model_projection", "per_layer_model_proj"},
    {Role::per_layer_model_norm, "model.per_layer_projection_norm", "per_layer_proj_norm"},
    {Role::per_layer_gate, "model.layers.{}.per_layer_input_gate", "blk.{}.inp_gate"},
    {Role::per_layer_proj, "model.layers.{}.per_layer_projection", "blk.{}.proj"},
    {Role::per_layer_norm, "model.layers.{}.post_per_layer_input_norm", "blk.{}.post_norm"},
    {Role::stream_proj, "model.altup_projections.{1}", "altup_proj"},
    {Role::stream_unembed_proj, "model.altup_unembed_projections.{1}", "altup_unembd_proj"},
    {Role::stream_router, "model.layers.{}.altup.modality_router", "blk.{}.altup_router"},
    {Role::stream_router_norm, "model.layers.{}.altup.router_norm", "blk.{}.altup_router_norm"},
    {Role::stream_predict, "model.layers.{}.altup.prediction_coefs", "blk.{}.altup_predict_coef"},
    {Role::stream_correct, "model.layers.{}.altup.correction_coefs", "blk.{}.altup_correct_coef"},
    {Role::stream_scale, "model.layers.{}.altup.correct_output_scale",
     "blk.{}.altup_correct_scale"},
    {Role::laurel_left, "model.layers.{}.laurel.linear_left", "blk.{}.laurel_l"},
    {Role::laurel_right, "model.layers.{}.laurel.linear_right", "blk.{}.laurel_r"},
    {Role::laurel_norm, "model.layers.{}.laurel.post_laurel_norm", "blk.{}.laurel_post_norm"},
}};

}  // namespace

std::string TensorNames::filled(std::string_view name, uint32_t layer, uint32_t expert) const {
  std::string result = fmt::format(fmt::runtime(name), layer, expert);
  if (!prefix_.empty() && result.starts_with(prefix_)) result.erase(0, prefix_.size());
  return result;
}

std::string TensorNames::operator()(Role role, uint32_t layer, uint32_t expert) const {
  const auto* row = std::ranges::find(kRows, role, &Row::role);
  ensure(row != kRows.end(), "a role without a row");
  const bool gguf = checkpoint_.kind() == formats::CheckpointKind::gguf;
  std::optional<std::string> first;
  for (const RoleName& own : own_) {
    if (own.role != role) continue;
    std::string name = filled(own.name, layer, expert);
    if (checkpoint_.find(name + ".weight") != nullptr) return name;
    if (!first) first = std::move(name);
  }
  return first ? *first : filled(gguf ? row->gguf : row->hf, layer, expert);
}

bool TensorNames::has(Role role, uint32_t layer) const {
  return checkpoint_.find((*this)(role, layer) + ".weight") != nullptr;
}

void TensorNames::drop_prefix() {
  const std::string name = (*this)(Role::token_embedding, 0);
  prefix_ = name.substr(0, name.find('.') + 1);
}

bool is_redundant(std::string_view name) {
  // Drafting layers beside the model; buffers of older releases: frequencies, causal masks and
  // their fill value.
  return name.starts_with("mtp.") || name.ends_with("rotary_emb.inv_freq") ||
         name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias");
}

}  // namespace wisp::model
