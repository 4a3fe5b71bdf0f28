#include "model/mixer_writer.h"

namespace wisp::model {

plan::ValueId MixerWriter::short_conv(ValueId x, const LayerWeights& w, const std::string& prefix) {
  const uint32_t width = model_.config.hidden_size;
  const ValueId in = linear(x, w.short_conv->in_proj, prefix + "conv.in");
  const ValueId out = value(prefix + "conv.out", width);
  add(plan::Conv{.x = in,
                 .out = out,
                 .state = w.state,
                 .weight = w.short_conv->conv.taps,
                 .bias = w.short_conv->conv.bias,
                 .x_offset = 2 * width,
                 .in_gate = 0,
                 .out_gate = width},
      prefix + "conv");
  return out;
}

}  // namespace wisp::model
