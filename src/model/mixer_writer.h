// Writes the ops of layers that mix tokens otherwise than by attention.
#pragma once

#include <string>

#include "model/plan_writer.h"

namespace wisp::model {

class MixerWriter : protected PlanWriter {
 protected:
  using PlanWriter::PlanWriter;

  // What o_proj of the layer reads.
  ValueId short_conv(ValueId x, const LayerWeights& w, const std::string& prefix);
  ValueId delta_net(ValueId x, const LayerWeights& w, const std::string& prefix);
  ValueId scan(ValueId x, const LayerWeights& w, const std::string& prefix);
  ValueId wkv(ValueId x, const LayerWeights& w, const std::string& prefix);

  // The residual stream with what RWKV's network adds to it.
  ValueId add_shifted(ValueId stream, ValueId x, const LayerWeights& w, const std::string& prefix);

 private:
  // A mixture of each column and the one before.
  ValueId mixed(ValueId x, plan::WeightId taps, plan::StateId state, const std::string& name);
};

}  // namespace wisp::model
