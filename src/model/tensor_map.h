// Which tensor of a checkpoint plays which role.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/checkpoint.h"

namespace wisp::model {

enum class Role : uint8_t {
  token_embedding,
  output_norm,
  lm_head,
  rope_factors,  // GGUF only: divisors of the rope frequencies
  attention_norm,
  q_proj,
  k_proj,
  v_proj,
  o_proj,
  q_norm,
  k_norm,
  ffn_norm,
  gate_proj,
  up_proj,
  down_proj,
};

// The name of a role's tensor without its ".weight" or ".bias", in either kind of checkpoint;
// `layer` is ignored for roles outside the layers. Empty when that kind has no such tensor.
std::string tensor_name(Role role, uint32_t layer, formats::CheckpointKind kind);

// Whether a tensor that nobody asked for may be left alone: tables that are computed anyway.
bool is_redundant(std::string_view name);

}  // namespace wisp::model
