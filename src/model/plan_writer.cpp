#include "model/plan_writer.h"

#include <utility>

#include "formats/dtype.h"

namespace wisp::model {

using plan::KernelClass;
using plan::ValueId;
using plan::ValueType;

PlanWriter::PlanWriter(const Model& model, const PlanOptions& options)
    : model_(model), options_(options), kernel_class_(options.kernel_class) {
  plan_.name = options.kernel_class == KernelClass::prefill ? "prefill" : "decode";
  plan_.max_columns = options.max_columns;
  plan_.max_logits = options.max_logits;
}

ValueId PlanWriter::value(std::string name, uint32_t width, ValueType type) {
  plan_.values.push_back({std::move(name), type, rows_, width});
  return ValueId{static_cast<uint32_t>(plan_.values.size() - 1)};
}

void PlanWriter::add(const plan::OpBody& body, std::string name) {
  plan_.ops.push_back({body, kernel_class_, std::move(name)});
}

ValueId PlanWriter::norm(ValueId x, const std::optional<NormWeights>& weights,
                         const std::string& name) {
  if (!weights) return x;
  const ModelConfig& c = model_.config;
  const uint32_t width = plan_[x].width;
  const ValueId out = value(name, width);
  add(plan::Norm{.x = x,
                 .out = out,
                 .kind = c.norm,
                 .weight = weights->weight,
                 .bias = weights->bias,
                 .eps = c.norm_eps,
                 .weight_offset = c.norm_weight_offset,
                 .group = width},
      name);
  return out;
}

bool PlanWriter::is_quantised(plan::WeightId id) const {
  return formats::is_block_type(model_.weights.list[plan::index(id)].dtype);
}

bool PlanWriter::takes_int8(plan::WeightId id) const {
  return options_.math == Math::fast && kernel_class_ == KernelClass::decode && is_quantised(id);
}

bool PlanWriter::fast_prefill() const {
  return options_.math == Math::fast && kernel_class_ == KernelClass::prefill;
}

// Where a model with experts has weights as they were trained, inputs stay exact: rounding them
// changes the choice of experts near ties, which is more than all else that it changes.
bool PlanWriter::f16_inputs(plan::WeightId id) const {
  return fast_prefill() && (is_quantised(id) || !model_.config.experts);
}

ValueId PlanWriter::gated(ValueId x, ValueId gate, const std::string& name,
                          plan::Activation activation, uint32_t offset) {
  const ValueId out = value(name, plan_[x].width);
  add(plan::Gate{.x = x, .gate = gate, .out = out, .activation = activation, .gate_offset = offset},
      name);
  return out;
}

ValueId PlanWriter::input_of(plan::WeightId weight, ValueId x, const std::string& name) {
  if (!takes_int8(weight)) return x;
  const auto [entry, is_new] = quantised_.try_emplace(x);
  if (is_new) {
    entry->second = value(name + ".q8", plan_[x].width, ValueType::q8);
    add(plan::Quantize{.x = x, .out = entry->second}, name + ".quantize");
  }
  return entry->second;
}

ValueId PlanWriter::linear(ValueId x, const Projection& projection, const std::string& name,
                           std::optional<ValueId> residual, float scale) {
  const ValueId out = value(name, projection.rows);
  uint32_t offset = 0;
  for (const Projection::Part& part : projection.parts) {
    add(plan::Linear{.x = input_of(part.weight, x, name),
                     .weight = part.weight,
                     .out = out,
                     .bias = part.bias,
                     .residual = residual,
                     .scale = scale,
                     .out_offset = offset,
                     .f16_inputs = f16_inputs(part.weight)},
        name);
    offset += part.rows;
  }
  return out;
}

ValueId PlanWriter::add_projected(ValueId stream, ValueId x, const Projection& projection,
                                  const std::optional<NormWeights>& post_norm,
                                  const std::string& name, float out_scale) {
  if (!post_norm) return linear(x, projection, name, stream, model_.config.residual_scale);
  return add_normed(stream, linear(x, projection, name), post_norm, name, out_scale);
}

ValueId PlanWriter::add_normed(ValueId stream, ValueId x,
                               const std::optional<NormWeights>& post_norm, const std::string& name,
                               float out_scale) {
  const ValueId b = norm(x, post_norm, name + ".post_norm");
  const ValueId out = value(name + ".sum", plan_[stream].width);
  add(plan::Add{.a = stream,
                .b = b,
                .out = out,
                .scale = model_.config.residual_scale,
                .out_scale = out_scale},
      name + ".add");
  return out;
}

ValueId PlanWriter::activate(ValueId x, uint32_t width, uint32_t groups, const std::string& prefix,
                             std::optional<float> cutoff) {
  const ModelConfig& c = model_.config;
  const ValueId out = value(prefix + "act", groups * width);
  if (c.gated_ffn) {
    add(plan::Glu{.x = x,
                  .out = out,
                  .activation = c.activation,
                  .groups = groups,
                  .alpha = c.glu_alpha,
                  .limit = c.glu_limit,
                  .up_offset = c.glu_up_offset,
                  .cutoff = cutoff},
        prefix + "glu");
  } else {
    add(plan::Activate{.x = x, .out = out, .activation = c.activation}, prefix + "act");
  }
  return out;
}

ValueId PlanWriter::part_linear(ValueId x, plan::WeightId weight, uint32_t parts,
                                const std::string& name) {
  const uint32_t rows = model_.weights.list[plan::index(weight)].rows;
  const ValueId out = value(name, rows);
  add(plan::ExpertLinear{.x = x,
                         .routes = {},
                         .weight = weight,
                         .out = out,
                         .num_experts = parts,
                         .top_k = parts,
                         .f16_inputs = f16_inputs(weight)},
      name);
  return out;
}

}  // namespace wisp::model
