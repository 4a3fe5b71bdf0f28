// Which tensor of a checkpoint plays which role.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/checkpoint.h"

namespace wisp::model {

enum class Role : uint8_t {
  token_embedding,
  position_embedding,
  output_norm,
  lm_head,
  rope_factors,        // GGUF only: divisors of the rope frequencies
  rope_factors_short,  // GGUF only: those of longrope
  rope_factors_long,
  attention_norm,
  qkv_proj,
  q_proj,
  k_proj,
  v_proj,
  o_proj,
  q_norm,
  k_norm,
  attention_sub_norm,
  attention_post_norm,
  ffn_norm,
  gate_up_proj,
  gate_proj,
  up_proj,
  down_proj,
  ffn_sub_norm,
  ffn_post_norm,
  attention_sinks,
  mixer_in_proj,  // of a mixer that is no attention
  mixer_conv,
  mixer_out_proj,
  delta_qkvz,  // of each key head: q, k, v, z; and b, a
  delta_ba,
  delta_qkv,
  delta_z,
  delta_b,
  delta_a,
  delta_rate,
  delta_dt_bias,
  delta_norm,
  scan_x_proj,
  scan_dt_proj,
  scan_rate,
  scan_dt_bias,
  scan_skip,
  scan_norm,
  embedding_norm,
  wkv_key,
  wkv_value,
  wkv_receptance,
  wkv_output,
  wkv_rate,
  wkv_first,
  wkv_mix_key,
  wkv_mix_value,
  wkv_mix_receptance,
  shift_mix_key,  // of the network
  shift_mix_receptance,
  shift_receptance,
  q_a_proj,
  q_a_norm,
  q_b_proj,
  kv_a_proj,
  kv_a_norm,
  kv_b_proj,
  k_b_proj,  // GGUF only: the parts of kv_b_proj, that for keys transposed
  v_b_proj,
  router,
  router_correction,
  expert_gate_up,
  expert_gate,
  expert_up,
  expert_down,
  shared_gate,
  shared_up,
  shared_down,
  shared_expert_gate,
  router_norm,
  expert_scales,
  experts_norm,  // around the experts, where the layer's own network runs beside them
  experts_post_norm,
  network_post_norm,  // of that network
  layer_scale,
  per_layer_embedding,
  per_layer_model_proj,
  per_layer_model_norm,
  per_layer_gate,
  per_layer_proj,
  per_layer_norm,
  stream_proj,  // numbered, {1}
  stream_unembed_proj,
  stream_router,
  stream_router_norm,
  stream_predict,
  stream_correct,
  stream_scale,
  laurel_left,
  laurel_right,
  laurel_norm,
};

// A tensor's name without its ".weight" or ".bias"; {} stands for the layer, a second one for the
// expert.
struct RoleName {
  Role role;
  std::string_view name;
};

// The names of one family's tensors in one checkpoint: its own where it has them, else the common
// ones.
class TensorNames {
 public:
  // `own` may have several names for a role. Both must outlive it.
  TensorNames(const formats::Checkpoint& checkpoint, std::span<const RoleName> own)
      : checkpoint_(checkpoint), own_(own) {}

  // For checkpoints of a bare decoder, whose names lack the first part ("model.", "transformer.").
  void drop_prefix();

  // The name that the checkpoint has, else the first; empty when its kind has no such tensor.
  // `layer` is ignored for roles outside the layers.
  std::string operator()(Role role, uint32_t layer, uint32_t expert = 0) const;

  bool has(Role role, uint32_t layer) const;

 private:
  std::string filled(std::string_view name, uint32_t layer, uint32_t expert) const;

  const formats::Checkpoint& checkpoint_;
  std::span<const RoleName> own_;
  std::string prefix_;  // dropped where a name has it
};

// Whether a tensor that nobody asked for may be left alone: tables that are computed anyway, and
// layers that only drafting takes.
bool is_redundant(std::string_view name);

}  // namespace wisp::model
