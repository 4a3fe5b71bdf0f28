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

// The convolution, the recurrence, then a norm of each head's result, which z gates.
plan::ValueId MixerWriter::delta_net(ValueId x, const LayerWeights& w, const std::string& prefix) {
  const DeltaNetConfig& d = *model_.config.delta_net;
  const DeltaNetWeights& weights = *w.delta_net;
  const std::string name = prefix + "delta.";
  const ValueId in = linear(x, weights.in_proj, name + "in");
  const ValueId qkv = value(name + "qkv", d.channels());
  add(plan::Conv{.x = in,
                 .out = qkv,
                 .state = w.state,
                 .weight = weights.conv.taps,
                 .activation = plan::Activation::silu},
      name + "conv");
  const ValueId out = value(name + "out", d.values());
  add(plan::DeltaNet{.x = qkv,
                     .gates = in,
                     .out = out,
                     .state = plan::StateId{plan::index(w.state) + 1},
                     .rate = weights.rate,
                     .dt_bias = weights.dt_bias,
                     .num_heads = d.num_heads,
                     .num_key_heads = d.num_key_heads,
                     .key_dim = d.key_dim,
                     .value_dim = d.value_dim,
                     .gates_offset = d.channels() + d.values(),
                     .tiled = d.tiled},
      prefix + "delta");
  const ValueId normed = value(name + "norm", d.values());
  add(plan::Norm{.x = out,
                 .out = normed,
                 .weight = weights.norm,
                 .eps = model_.config.norm_eps,
                 .group = d.value_dim},
      name + "norm");
  return gated(normed, in, name + "gate", plan::Activation::silu, d.channels());
}

// The convolution, the scan, then z gates what it gives and a norm may follow.
plan::ValueId MixerWriter::scan(ValueId x, const LayerWeights& w, const std::string& prefix) {
  const ScanConfig& s = *model_.config.scan;
  const ScanWeights& weights = *w.scan;
  const bool ranked = s.dt_rank != 0;
  const std::string name = prefix + "scan.";
  const ValueId in = linear(x, weights.in_proj, name + "in");
  const ValueId conv = value(name + "conv", s.channels());
  add(plan::Conv{.x = in,
                 .out = conv,
                 .state = w.state,
                 .weight = weights.conv.taps,
                 .bias = weights.conv.bias,
                 .activation = plan::Activation::silu,
                 .x_offset = ranked ? 0 : s.inner_size},
      name + "conv");
  const uint32_t group = s.num_groups * s.state_size;
  plan::Scan op{.x = conv,
                .dt = in,
                .bc = conv,
                .out = value(name + "out", s.inner_size),
                .state = plan::StateId{plan::index(w.state) + 1},
                .rate = weights.rate,
                .dt_bias = weights.dt_bias,
                .skip = weights.skip,
                .num_heads = s.num_heads,
                .num_groups = s.num_groups,
                .state_size = s.state_size,
                .dt_offset = s.inner_size + s.channels(),
                .b_offset = s.inner_size,
                .c_offset = s.inner_size + group,
                .dt_min = s.dt_min,
                .dt_max = s.dt_max};
  if (ranked) {
    const ValueId low = linear(conv, *weights.dt_in, name + "dt_in");
    op.dt = linear(low, {{{*weights.dt_proj, {}, s.inner_size}}, s.inner_size}, name + "dt");
    op.bc = linear(conv, *weights.bc, name + "bc");
    op.dt_offset = op.b_offset = 0;
    op.c_offset = group;
  }
  add(op, prefix + "scan");
  const ValueId behind_gate =
      gated(op.out, in, name + "gate", plan::Activation::silu, ranked ? s.inner_size : 0);
  if (!weights.norm) return behind_gate;
  const ValueId normed = value(name + "norm", s.inner_size);
  add(plan::Norm{.x = behind_gate,
                 .out = normed,
                 .weight = weights.norm,
                 .eps = model_.config.norm_eps,
                 .group = s.norm_group},
      name + "norm");
  return normed;
}

plan::ValueId MixerWriter::mixed(ValueId x, plan::WeightId taps, plan::StateId state,
                                 const std::string& name) {
  const ValueId out = value(name, plan_[x].width);
  add(plan::Conv{.x = x, .out = out, .state = state, .weight = taps}, name);
  return out;
}

// What o_proj reads: wkv behind the gate of the receptance.
plan::ValueId MixerWriter::wkv(ValueId x, const LayerWeights& w, const std::string& prefix) {
  const WkvWeights& weights = *w.wkv;
  const uint32_t size = model_.config.attention_size;
  const std::string name = prefix + "wkv.";
  const auto state = [&](uint32_t i) { return plan::StateId{plan::index(w.state) + i}; };
  const ValueId k =
      linear(mixed(x, weights.mix_key, state(0), name + "mix_k"), weights.key, name + "k");
  const ValueId v =
      linear(mixed(x, weights.mix_value, state(1), name + "mix_v"), weights.value, name + "v");
  const ValueId r = linear(mixed(x, weights.mix_receptance, state(2), name + "mix_r"),
                           weights.receptance, name + "r");
  const ValueId out = value(name + "out", size);
  add(plan::Wkv{.k = k,
                .v = v,
                .out = out,
                .state = state(3),
                .rate = weights.rate,
                .first = weights.first},
      prefix + "wkv");
  return gated(out, r, name + "gate");
}

plan::ValueId MixerWriter::add_shifted(ValueId stream, ValueId x, const LayerWeights& w,
                                       const std::string& prefix) {
  const ShiftedNetworkWeights& weights = *w.shifted;
  const std::string name = prefix + "ffn.";
  const auto state = [&](uint32_t i) { return plan::StateId{plan::index(w.state) + i}; };
  const ValueId up = linear(mixed(x, weights.mix_key, state(4), name + "mix_k"), w.up, name + "up");
  const ValueId down = linear(activate(up, plan_[up].width, 1, name), w.down_proj, name + "down");
  const ValueId r = linear(mixed(x, weights.mix_receptance, state(5), name + "mix_r"),
                           weights.receptance, name + "r");
  return add_normed(stream, gated(down, r, name + "gate"), {}, name + "add", 1.0F);
}

}  // namespace wisp::model
