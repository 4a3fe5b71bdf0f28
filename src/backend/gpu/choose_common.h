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

// Constants and bindings of lib/emit_q8.wgsl.
inline void add_q8_out(KernelUse& use, const ChooseContext& c, plan::ValueId out) {
  use.spec.constants.emplace_back("Q8_STRIDE", value_stride(c.plan[out]));
  use.spec.constants.emplace_back("OUT_WIDTH", c.plan[out].width);
  use.bindings.push_back(value_binding("q8_out", out));
}

// How results of a pointwise op are written: f32, f16 or q8 rows, by the type of `out`; where out
// is f32 also as the q8 rows `quantized`.
inline void add_out(KernelUse& use, const ChooseContext& c, plan::ValueId out,
                    const std::optional<plan::ValueId>& quantized = {}) {
  const plan::Value& value = c.plan[out];
  const uint32_t stride = value_stride(value);
  if (plan::is_q8(value.type)) {
    use.spec.includes.emplace_back("out/q8.wgsl");
    return add_q8_out(use, c, out);
  }
  use.bindings.push_back(value_binding("out", out));
  if (value.type == plan::ValueType::f16) {
    use.spec.includes.emplace_back("out/f16.wgsl");
    use.spec.uses_f16 = true;
    use.spec.constants.emplace_back("OUT_STRIDE4", stride / 2);
    return;
  }
  use.spec.includes.emplace_back(quantized ? "out/f32_q8.wgsl" : "out/f32.wgsl");
  use.spec.constants.emplace_back("OUT_STRIDE4", stride / 4);
  if (quantized) add_q8_out(use, c, *quantized);
}

// Constants and bindings of lib/normed_q8.wgsl.
inline void add_norm_out(KernelUse& use, const ChooseContext& c, const plan::NormOut& norm) {
  auto& constants = use.spec.constants;
  constants.emplace_back("NORM_WEIGHT", norm.weight.has_value());
  constants.emplace_back("NORM_OFFSET", norm.weight_offset);
  constants.emplace_back("NORM_WIDTH", c.plan[norm.out].width);
  constants.emplace_back("NORMED_STRIDE", value_stride(c.plan[norm.out]));
  use.bindings.push_back(table_binding(c, "norm_weight", norm.weight));
  use.bindings.push_back(value_binding("normed", norm.out));
}

// Whether weights are d * (byte - a constant), with one f16 d for each group of 32.
inline bool has_group_scales(formats::DType dtype) {
  return dtype == formats::DType::Q4_0 || dtype == formats::DType::Q8_0;
}

// How kernels find that d (the same numbers): all by pairs but where kScaleShift was measured
// faster.
constexpr std::string_view kScalePairs = "lib/scale_pairs.wgsl";
constexpr std::string_view kScaleShift = "lib/scale_shift.wgsl";

// The constants of a codec, and its files.
void add_codec(gpu::KernelSpec& spec, const ChooseContext& c, const plan::Weight& weight);

// Makes `use` the cooperative matrices' kernel for `columns` columns of x times 128 rows a
// workgroup; an include that says what they are is left to add.
void set_matrix_tile(KernelUse& use, const ChooseContext& c, plan::WeightId weight_id,
                     plan::ValueId x, uint32_t columns);

// Constants and bindings of the KV pages of a layer, of a rotation (absent: of no elements) and of
// the norms of heads.
void add_kv(KernelUse& use, const ChooseContext& c, plan::KvLayerId id, bool write);
void add_rope(KernelUse& use, const ChooseContext& c, const std::optional<plan::WeightId>& rope,
              plan::RopeStyle style);
void add_head_norms(KernelUse& use, const ChooseContext& c, const plan::RopeKv& op);

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
std::vector<KernelUse> choose_op(const plan::Conv& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::DeltaNet& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::Scan& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::Wkv& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);
std::vector<KernelUse> choose_op(const plan::Sample& op, plan::KernelClass kernel_class,
                                 const ChooseContext& c);

}  // namespace wisp::backend::webgpu
