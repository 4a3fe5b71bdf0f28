// What the parts of choose.cpp share.
#pragma once

#include <algorithm>
#include <bit>
#include <string>

#include "backend/gpu/choose.h"
#include "backend/gpu/layout.h"
#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::webgpu {

inline uint32_t div_up(uint32_t a, uint32_t b) { return static_cast<uint32_t>(ceil_div(a, b)); }

// Shuffles serve teams and octets where every subgroup has at least 8 invocations.
inline bool has_shuffles(const gpu::Capabilities& c) {
  return c.subgroups && c.subgroup_min_size >= 8;
}

// Invocations that sum a row together; the same for all columns of a device.
inline uint32_t team_size(const gpu::Capabilities& c, uint32_t groups) {
  const uint32_t most = has_shuffles(c) ? std::min(32U, std::bit_floor(c.subgroup_min_size)) : 32U;
  return std::min(most, std::max(8U, std::bit_ceil(groups)));
}

// Adds the reduction that the adapter can do.
inline void add_reduce(gpu::KernelSpec& spec, const gpu::Capabilities& c, uint32_t team) {
  const bool shuffles = has_shuffles(c);
  spec.includes.emplace_back(shuffles ? "lib/reduce_subgroup.wgsl" : "lib/reduce_shared.wgsl");
  spec.uses_subgroups = shuffles;
  spec.constants.emplace_back("TEAM", team);
}

inline const plan::Weight& weight(const ChooseContext& c, plan::WeightId id) {
  return c.resources.weights[plan::index(id)];
}

inline bool logit_rows(const ChooseContext& c, plan::ValueId id) {
  return c.plan[id].rows == plan::Rows::logits;
}

// Most rows that a value has in a step.
inline uint32_t most_rows(const ChooseContext& c, plan::ValueId id) {
  return logit_rows(c, id) ? c.plan.max_logits : c.plan.max_columns;
}

inline Binding value_binding(std::string_view name, plan::ValueId id) {
  return {name, Bound::value, plan::index(id)};
}

// A table or vector that kernels index as a whole.
inline Binding table_binding(const ChooseContext& c, std::string_view name,
                             const std::optional<plan::WeightId>& id) {
  if (!id) return {name, Bound::unused};
  if (c.weights[plan::index(*id)].size() != 1) {
    fail("{} is larger than one binding of the adapter ({} bytes)", weight(c, *id).name,
         c.capabilities.max_binding_size);
  }
  return {name, Bound::weight_data, plan::index(*id)};
}

// How results of a pointwise op are written: f32, f16 or q8 rows, by the type of `out`.
inline void add_out(gpu::KernelSpec& spec, const ChooseContext& c, plan::ValueId out) {
  const plan::Value& value = c.plan[out];
  const uint32_t stride = value_stride(value);
  if (plan::is_q8(value.type)) {
    spec.includes.emplace_back("out/q8.wgsl");
    spec.constants.emplace_back("OUT_STRIDE", stride);
    spec.constants.emplace_back("OUT_WIDTH", value.width);
  } else if (value.type == plan::ValueType::f16) {
    spec.includes.emplace_back("out/f16.wgsl");
    spec.uses_f16 = true;
    spec.constants.emplace_back("OUT_STRIDE4", stride / 2);
  } else {
    spec.includes.emplace_back("out/f32.wgsl");
    spec.constants.emplace_back("OUT_STRIDE4", stride / 4);
  }
}

// The constants of a codec, and its files.
void add_codec(gpu::KernelSpec& spec, const ChooseContext& c, const plan::Weight& weight);

// Constants and bindings of the KV pages of a layer, and of a rotation (absent: of no elements).
void add_kv(KernelUse& use, const ChooseContext& c, plan::KvLayerId id, bool write);
void add_rope(KernelUse& use, const ChooseContext& c, const std::optional<plan::WeightId>& rope,
              plan::RopeStyle style);

std::vector<KernelUse> choose_op(const plan::Linear& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::RopeKv& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::LatentKv& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::Attention& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::Route& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::ExpertLinear& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::Combine& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::StreamMatch& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::StreamPredict& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::StreamCorrect& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::Sample& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);

}  // namespace wisp::backend::webgpu
