#include "model/tensor_map.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace wisp::model {
namespace {

struct Row {
  Role role;
  std::string_view hf;  // {} stands for the layer
  std::string_view gguf;
};

constexpr std::array<Row, 15> kRows = {{
    {Role::token_embedding, "model.embed_tokens", "token_embd"},
    {Role::output_norm, "model.norm", "output_norm"},
    {Role::lm_head, "lm_head", "output"},
    {Role::rope_factors, "", "rope_freqs"},
    {Role::attention_norm, "model.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {Role::q_proj, "model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"},
    {Role::k_proj, "model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"},
    {Role::v_proj, "model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"},
    {Role::o_proj, "model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"},
    {Role::q_norm, "model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {Role::k_norm, "model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
    {Role::ffn_norm, "model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {Role::gate_proj, "model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"},
    {Role::up_proj, "model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"},
    {Role::down_proj, "model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"},
}};

}  // namespace

std::string tensor_name(Role role, uint32_t layer, formats::CheckpointKind kind) {
  const auto* row = std::ranges::find(kRows, role, &Row::role);
  ensure(row != kRows.end(), "a role without a row");
  const std::string_view pattern = kind == formats::CheckpointKind::gguf ? row->gguf : row->hf;
  return fmt::format(fmt::runtime(pattern), layer);
}

bool is_redundant(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

}  // namespace wisp::model
