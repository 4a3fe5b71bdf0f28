// Writes the ops that layers of all families are made of.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/model.h"

namespace wisp::model {

// A plan in the making. Ops are added in the order of the calls; values get the rows that `rows_`
// says when they are made.
class PlanWriter {
 protected:
  using ValueId = plan::ValueId;

  // Both outlive the writer.
  PlanWriter(const Model& model, const PlanOptions& options);

  ValueId value(std::string name, uint32_t width, plan::ValueType type = plan::ValueType::f32);
  void add(const plan::OpBody& body, std::string name);

  // x where there is no such norm.
  ValueId norm(ValueId x, const std::optional<NormWeights>& weights, const std::string& name);

  // residual + scale * (W x + bias).
  ValueId linear(ValueId x, const Projection& projection, const std::string& name,
                 std::optional<ValueId> residual = {}, float scale = 1.0F);

  // out[:, i] = W_i x[:, i] of each part.
  ValueId part_linear(ValueId x, plan::WeightId weight, uint32_t parts, const std::string& name);

  // The residual stream with what a projection of x adds to it; the sum is scaled where its parts
  // are added by an op of their own.
  ValueId add_projected(ValueId stream, ValueId x, const Projection& projection,
                        const std::optional<NormWeights>& post_norm, const std::string& name,
                        float out_scale = 1.0F);
  ValueId add_normed(ValueId stream, ValueId x, const std::optional<NormWeights>& post_norm,
                     const std::string& name, float out_scale);

  // x[:, i] * act(gate[:, offset + i]), where a gate of width 1 holds for the whole row.
  ValueId gated(ValueId x, ValueId gate, const std::string& name,
                plan::Activation activation = plan::Activation::sigmoid, uint32_t offset = 0);

  // `groups` networks' inner values side by side, of width `width` each.
  ValueId activate(ValueId x, uint32_t width, uint32_t groups, const std::string& prefix,
                   std::optional<float> cutoff = {});

  // x as a weight's op takes it: quantised where the mode and the weight's type ask for it, once
  // for all that read it.
  ValueId input_of(plan::WeightId weight, ValueId x, const std::string& name);

  // Whether an op rounds its inputs to halves: of attention, and of a weight.
  bool fast_prefill() const;
  bool f16_inputs(plan::WeightId id) const;

  const Model& model_;
  const PlanOptions& options_;
  plan::Plan plan_;
  plan::KernelClass kernel_class_;
  plan::Rows rows_ = plan::Rows::columns;

 private:
  bool is_quantised(plan::WeightId id) const;
  bool takes_int8(plan::WeightId id) const;

  std::map<ValueId, ValueId> quantised_;
};

}  // namespace wisp::model
