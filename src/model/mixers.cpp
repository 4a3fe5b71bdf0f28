#include "model/mixers.h"

#include "base/error.h"

namespace wisp::model {
namespace {

using Rows = WeightResolver::Rows;
using RowRange = WeightResolver::RowRange;

ShortConvWeights short_conv(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const Rows in_proj[] = {{Role::mixer_in_proj, 3 * c.hidden_size}};
  return {.in_proj = resolver.projection(in_proj, layer, c.hidden_size, c.conv_bias),
          .conv = {.taps = resolver.conv_taps(Role::mixer_conv, layer, c.hidden_size, c.conv_taps),
                   .bias = resolver.own_bias(Role::mixer_conv, layer, c.hidden_size, c.conv_bias)}};
}

// Of each key head's rows those of [begin, begin + rows), counted in heads' parts of `group` rows.
void add_ranges(std::vector<RowRange>& order, uint32_t heads, uint32_t group, uint32_t begin,
                uint32_t rows) {
  for (uint32_t h = 0; h < heads; ++h) order.push_back({h * group + begin, rows});
}

// b and a of the heads that share a key head lie together.
Projection grouped_gates(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const DeltaNetConfig& d = *c.delta_net;
  const uint32_t share = d.num_heads / d.num_key_heads;
  std::vector<RowRange> order;
  add_ranges(order, d.num_key_heads, 2 * share, 0, share);
  add_ranges(order, d.num_key_heads, 2 * share, share, share);
  return resolver.select(Role::delta_ba, layer, 2 * d.num_heads, order, c.hidden_size, false);
}

// Files have q, k, v, z of each key head together, or [q, k, v] and z; b and a of each together, or
// apart.
Projection delta_in_proj(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const DeltaNetConfig& d = *c.delta_net;
  const uint32_t rows = d.channels() + d.values();
  const uint32_t values = d.values() / d.num_key_heads;  // of a key head
  const Rows apart[] = {{Role::delta_qkv, d.channels()},
                        {Role::delta_z, d.values()},
                        {Role::delta_b, d.num_heads},
                        {Role::delta_a, d.num_heads}};
  if (!resolver.has(Role::delta_qkvz, layer)) {
    const std::span<const Rows> all(apart);
    if (!resolver.has(Role::delta_ba, layer)) {
      return resolver.projection(all, layer, c.hidden_size, false);
    }
    Projection result = resolver.projection(all.first(2), layer, c.hidden_size, false);
    append(result, grouped_gates(resolver, c, layer));
    return result;
  }
  const uint32_t group = 2 * d.key_dim + 2 * values;
  std::vector<RowRange> order;
  add_ranges(order, d.num_key_heads, group, 0, d.key_dim);
  add_ranges(order, d.num_key_heads, group, d.key_dim, d.key_dim);
  add_ranges(order, d.num_key_heads, group, 2 * d.key_dim, values);
  add_ranges(order, d.num_key_heads, group, 2 * d.key_dim + values, values);
  Projection result = resolver.select(Role::delta_qkvz, layer, rows, order, c.hidden_size, false);
  append(result, grouped_gates(resolver, c, layer));
  return result;
}

DeltaNetWeights delta_net(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const DeltaNetConfig& d = *c.delta_net;
  return {.in_proj = delta_in_proj(resolver, c, layer),
          .conv = {.taps = resolver.conv_taps(Role::mixer_conv, layer, d.channels(), c.conv_taps),
                   .bias = {}},
          .rate = resolver.decay_rates(Role::delta_rate, layer, 1, d.num_heads),
          .dt_bias = resolver.bare_vector(Role::delta_dt_bias, layer, d.num_heads),
          .norm = resolver.vector(Role::delta_norm, layer, d.value_dim)};
}

ScanWeights scan(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const ScanConfig& s = *c.scan;
  const bool ranked = s.dt_rank != 0;
  const Rows in_proj[] = {
      {Role::mixer_in_proj, s.inner_size + s.channels() + (ranked ? 0 : s.num_heads)}};
  ScanWeights w;
  w.in_proj = resolver.projection(in_proj, layer, c.hidden_size, c.scan_bias);
  w.conv = {.taps = resolver.conv_taps(Role::mixer_conv, layer, s.channels(), c.conv_taps),
            .bias = resolver.own_bias(Role::mixer_conv, layer, s.channels(), c.conv_bias)};
  if (ranked) {
    const uint32_t rows = s.dt_rank + 2 * s.state_size;
    const RowRange dt[] = {{0, s.dt_rank}};
    const RowRange bc[] = {{s.dt_rank, 2 * s.state_size}};
    w.dt_in = resolver.select(Role::scan_x_proj, layer, rows, dt, s.inner_size, false);
    w.bc = resolver.select(Role::scan_x_proj, layer, rows, bc, s.inner_size, false);
    w.dt_proj = resolver.matrix(Role::scan_dt_proj, layer, s.inner_size, s.dt_rank);
  }
  w.rate = resolver.decay_rates(Role::scan_rate, layer, s.num_heads, ranked ? s.state_size : 1);
  w.dt_bias = resolver.flat_vector(Role::scan_dt_bias, layer, s.num_heads);
  w.skip = resolver.flat_vector(Role::scan_skip, layer, s.num_heads);
  if (s.norm_group != 0) {
    w.norm = resolver.flat_vector(Role::scan_norm, layer, s.inner_size);
  }
  return w;
}

Projection plain(WeightResolver& resolver, Role role, uint32_t layer, uint32_t rows,
                 uint32_t cols) {
  const Rows all[] = {{role, rows}};
  return resolver.projection(all, layer, cols, false);
}

WkvWeights wkv(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const uint32_t size = c.attention_size;
  return {.mix_key = resolver.shift_taps(Role::wkv_mix_key, layer, c.hidden_size),
          .mix_value = resolver.shift_taps(Role::wkv_mix_value, layer, c.hidden_size),
          .mix_receptance = resolver.shift_taps(Role::wkv_mix_receptance, layer, c.hidden_size),
          .key = plain(resolver, Role::wkv_key, layer, size, c.hidden_size),
          .value = plain(resolver, Role::wkv_value, layer, size, c.hidden_size),
          .receptance = plain(resolver, Role::wkv_receptance, layer, size, c.hidden_size),
          .rate = resolver.decay_rates(Role::wkv_rate, layer, 1, size),
          .first = resolver.bare_vector(Role::wkv_first, layer, size)};
}

ShiftedNetworkWeights shifted(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const uint32_t size = c.hidden_size;
  return {.mix_key = resolver.shift_taps(Role::shift_mix_key, layer, size),
          .mix_receptance = resolver.shift_taps(Role::shift_mix_receptance, layer, size),
          .receptance = plain(resolver, Role::shift_receptance, layer, size, size)};
}

}  // namespace

void add_states(const ModelConfig& c, const LayerConfig& layer,
                std::vector<plan::StateLayer>& states) {
  if (layer.mixer == Mixer::short_conv) states.push_back({(c.conv_taps - 1) * c.hidden_size});
  if (layer.mixer == Mixer::scan) {
    states.push_back({(c.conv_taps - 1) * c.scan->channels()});
    states.push_back({c.scan->inner_size * c.scan->state_size});
  }
  if (layer.mixer == Mixer::wkv) {
    // The column before: three mixtures, wkv's own, two mixtures of the network.
    for (uint32_t i = 0; i < 3; ++i) states.push_back({c.hidden_size});
    states.push_back({3 * c.attention_size});
    for (uint32_t i = 0; i < 2; ++i) states.push_back({c.hidden_size});
  }
  if (layer.mixer != Mixer::delta_net) return;
  states.push_back({(c.conv_taps - 1) * c.delta_net->channels()});
  states.push_back({c.delta_net->values() * c.delta_net->key_dim});
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
    case Mixer::scan:
      w.scan = scan(resolver, c, layer);
      w.o_proj = resolver.projection(out_proj, layer, c.scan->inner_size, c.scan_bias);
      return;
    case Mixer::wkv:
      w.wkv = wkv(resolver, c, layer);
      w.shifted = shifted(resolver, c, layer);
      w.o_proj = plain(resolver, Role::wkv_output, layer, c.hidden_size, c.attention_size);
      return;
    case Mixer::delta_net:
      w.delta_net = delta_net(resolver, c, layer);
      w.o_proj = resolver.projection(out_proj, layer, c.delta_net->values(), false);
      return;
  }
  fail("a mixer of no known kind");
}

}  // namespace wisp::model
