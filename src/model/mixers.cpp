#include "model/mixers.h"

#include "base/error.h"

namespace wisp::model {
namespace {

using Rows = WeightResolver::Rows;

ShortConvWeights short_conv(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const Rows in_proj[] = {{Role::mixer_in_proj, 3 * c.hidden_size}};
  return {.in_proj = resolver.projection(in_proj, layer, c.hidden_size, c.conv_bias),
          .conv = {.taps = resolver.conv_taps(Role::mixer_conv, layer, c.hidden_size, c.conv_taps),
                   .bias = resolver.own_bias(Role::mixer_conv, layer, c.hidden_size, c.conv_bias)}};
}

}  // namespace

void add_states(const ModelConfig& c, const LayerConfig& layer,
                std::vector<plan::StateLayer>& states) {
  if (layer.mixer == Mixer::short_conv) states.push_back({(c.conv_taps - 1) * c.hidden_size});
}

void resolve_mixer(WeightResolver& resolver, const ModelConfig& c, uint32_t layer,
                   LayerWeights& w) {
  const Rows out_proj[] = {{Role::mixer_out_proj, c.hidden_size}};
  switch (c.layers[layer].mixer) {
    case Mixer::attention:
    case Mixer::none:
      return;
    case Mixer::short_conv:
      w.short_conv = short_conv(resolver, c, layer);
      w.o_proj = resolver.projection(out_proj, layer, c.hidden_size, c.conv_bias);
      return;
  }
  fail("a mixer of no known kind");
}

}  // namespace wisp::model
