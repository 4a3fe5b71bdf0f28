#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace wisp::model {
namespace {

// Far above any published model, far below what would overflow 32 bits in a product of two.
constexpr uint32_t kMaxDim = 1U << 24;
constexpr uint32_t kMaxStateWidth = 1U << 28;  // f32 values of one sequence and layer
constexpr uint32_t kMaxLayers = 4096;

void expect_range(std::string_view name, uint32_t value, uint32_t max) {
  if (value == 0 || value > max) fail("{} is {}, expected 1 to {}", name, value, max);
}

void expect_finite(std::string_view name, double value) {
  if (!std::isfinite(value)) fail("{} is {}", name, value);
}

void expect_positive(std::string_view name, double value) {
  if (!(value > 0.0) || !std::isfinite(value)) fail("{} is {}, expected above 0", name, value);
}

void expect_order(std::string_view low_name, double low, std::string_view high_name, double high) {
  expect_positive(low_name, low);
  if (high > low && std::isfinite(high)) return;
  fail("{} is {} and {} {}, expected more", low_name, low, high_name, high);
}

// Zero stands for "none".
void expect_none_or_positive(std::string_view name, double value) {
  if (!(value >= 0.0) || !std::isfinite(value)) fail("{} is {}, expected 0 or more", name, value);
}

void check_factors(std::string_view name, const std::vector<double>& factors, uint32_t pairs) {
  if (factors.size() != pairs) {
    fail("longrope has {} factors, expected {}: {}", factors.size(), pairs, name);
  }
  for (const double factor : factors) expect_positive(name, factor);
}

void check_experts(const ExpertsConfig& e) {
  expect_range("num_experts", e.num_experts, 4096);
  expect_range("num_experts_per_token", e.top_k, std::min(e.num_experts, 64U));
  expect_range("expert intermediate_size", e.intermediate_size, kMaxDim);
  if (e.shared_intermediate_size > kMaxDim) {
    fail("shared intermediate_size is {}", e.shared_intermediate_size);
  }
  expect_finite("the scale of experts (routed_scaling_factor)", e.scale);
  expect_finite("router_scale", e.router_scale);
  if (e.num_groups == 0 || e.num_experts % e.num_groups != 0) {
    fail("n_group is {}, which does not divide num_experts {}", e.num_groups, e.num_experts);
  }
  expect_range("topk_group", e.top_groups, e.num_groups);
  const uint32_t choice = e.num_experts / e.num_groups * e.top_groups;
  if (e.top_k > choice) {
    fail("num_experts_per_token is {}, of {} experts in the chosen groups", e.top_k, choice);
  }
}

void check_latent(const LatentConfig& latent, uint32_t head_dim) {
  if (latent.q_rank > kMaxDim) fail("q_lora_rank is {}", latent.q_rank);
  expect_range("kv_lora_rank", latent.kv_rank, 4096);
  expect_range("qk_nope_head_dim", latent.nope_dim, 4096);
  expect_range("qk_rope_head_dim", latent.rope_dim, 4096);
  expect_range("v_head_dim", latent.value_dim, 4096);
  if (latent.kv_rank % 2 != 0) fail("kv_lora_rank {} is odd", latent.kv_rank);
  if (latent.nope_dim + latent.rope_dim != head_dim) {
    fail("head_dim {} is not qk_nope_head_dim {} + qk_rope_head_dim {}", head_dim, latent.nope_dim,
         latent.rope_dim);
  }
}

void check_sections(const RopeConfig& rope) {
  if (rope.sections.empty()) return;
  uint64_t pairs = 0;
  for (const uint32_t section : rope.sections) pairs += section;
  // Interleaved, what is left turns by the first axis.
  const bool fit =
      rope.interleaved_sections ? pairs <= rope.rotary_dim / 2 : pairs == rope.rotary_dim / 2;
  if (rope.sections.size() != 3 || !fit) {
    fail("mrope_section has {} numbers that add up to {}, expected 3 that add up to {}",
         rope.sections.size(), pairs, rope.rotary_dim / 2);
  }
}

void check_rope(const RopeConfig& rope) {
  if (rope.rotary_dim == 0 || rope.rotary_dim % 2 != 0) {
    fail("rotary_dim is {}, expected an even number", rope.rotary_dim);
  }
  check_sections(rope);
  if (!(rope.theta > 1.0) || !std::isfinite(rope.theta)) fail("rope_theta is {}", rope.theta);
  if (rope.scaling != RopeScaling::none) expect_positive("rope factor", rope.factor);
  if (rope.attention_factor) expect_positive("rope attention_factor", *rope.attention_factor);
  if (rope.mscale) expect_none_or_positive("rope mscale", *rope.mscale);
  if (rope.mscale_all_dim) expect_none_or_positive("rope mscale_all_dim", *rope.mscale_all_dim);
  if (rope.scaling == RopeScaling::yarn) {
    expect_order("rope beta_slow", rope.beta_slow, "beta_fast", rope.beta_fast);
  }
  if (rope.scaling == RopeScaling::llama3) {
    expect_order("rope low_freq_factor", rope.low_freq_factor, "high_freq_factor",
                 rope.high_freq_factor);
  }
  const bool needs_original = rope.scaling == RopeScaling::llama3 ||
                              rope.scaling == RopeScaling::yarn ||
                              rope.scaling == RopeScaling::longrope;
  if (needs_original && (rope.original_context < 2 || rope.original_context > kMaxContext)) {
    fail("rope original_max_position_embeddings is {}, expected 2 to {}", rope.original_context,
         kMaxContext);
  }
  if (rope.scaling == RopeScaling::longrope) {
    check_factors("rope short_factor", rope.short_factors, rope.rotary_dim / 2);
    check_factors("rope long_factor", rope.long_factors, rope.rotary_dim / 2);
  }
}

void check_scan(const ScanConfig& s, uint32_t taps) {
  if (taps < 2 || taps > plan::kMaxTaps) {
    fail("convolutions of {} taps, expected 2 to {}", taps, plan::kMaxTaps);
  }
  expect_range("scan_inner_size", s.inner_size, kMaxDim);
  expect_range("scan_heads", s.num_heads, kMaxDim);
  expect_range("scan_groups", s.num_groups, 4096);
  expect_range("scan_state_size", s.state_size, plan::kMaxScanState);
  if (uint64_t{s.inner_size} * s.state_size > kMaxStateWidth) {
    fail("a scan of {} channels with states of {}, expected {} values or less", s.inner_size,
         s.state_size, kMaxStateWidth);
  }
  if (s.dt_rank > kMaxDim) fail("time_step_rank is {}", s.dt_rank);
  if (s.inner_size % s.num_heads != 0 || s.num_heads % s.num_groups != 0) {
    fail("{} channels of {} heads of {} groups", s.inner_size, s.num_heads, s.num_groups);
  }
  if (s.norm_group != 0 && s.inner_size % s.norm_group != 0) {
    fail("norms over {} of {} channels", s.norm_group, s.inner_size);
  }
  if (!(s.dt_min <= s.dt_max)) fail("time_step_limit is {} to {}", s.dt_min, s.dt_max);
}

void check_mixer(const LayerConfig& layer, const ModelConfig& c) {
  if (layer.mixer == Mixer::short_conv && (c.conv_taps < 2 || c.conv_taps > plan::kMaxTaps)) {
    fail("convolutions of {} taps, expected 2 to {}", c.conv_taps, plan::kMaxTaps);
  }
  if (layer.mixer == Mixer::delta_net) {
    if (!c.delta_net) fail("layers with a linear attention that the family does not have");
    const DeltaNetConfig& d = *c.delta_net;
    expect_range("conv_taps", c.conv_taps, plan::kMaxTaps);
    expect_range("delta_net_heads", d.num_heads, 4096);
    expect_range("delta_net_key_heads", d.num_key_heads, 4096);
    expect_range("delta_net_key_dim", d.key_dim, plan::kMaxDeltaDim);
    expect_range("delta_net_value_dim", d.value_dim, plan::kMaxDeltaDim);
    if (c.conv_taps < 2) fail("conv_taps is {}, expected 2 or more", c.conv_taps);
    if (d.num_heads % d.num_key_heads != 0) {
      fail("delta_net_heads {} is not a multiple of delta_net_key_heads {}", d.num_heads,
           d.num_key_heads);
    }
  }
  if (layer.mixer == Mixer::wkv) expect_range("attention_size", c.attention_size, kMaxDim);
  if (layer.mixer == Mixer::scan) {
    if (!c.scan) fail("layers with a scan that the family does not have");
    check_scan(*c.scan, c.conv_taps);
  }
  if (layer.mixer == Mixer::none && !layer.network) fail("a layer has no mixer and no network");
}

void check_layer(const LayerConfig& layer, const ModelConfig& c) {
  check_mixer(layer, c);
  const bool own_network = layer.network && (!layer.experts || c.experts->beside_network);
  if (own_network) expect_range("intermediate_size", layer.intermediate_size, kMaxDim);
  if (layer.mixer != Mixer::attention) return;
  expect_range("num_kv_heads", layer.num_kv_heads, 4096);
  expect_range("head_dim", layer.head_dim, 4096);
  if (c.num_heads % layer.num_kv_heads != 0) {
    fail("num_heads {} is not a multiple of num_kv_heads {}", c.num_heads, layer.num_kv_heads);
  }
  if (layer.head_dim % 2 != 0) fail("head_dim {} is odd", layer.head_dim);
  if (c.latent) check_latent(*c.latent, layer.head_dim);
  if (layer.rope == LayerRope::none) return;
  ensure(layer.rope == LayerRope::global || c.local_rope.has_value(),
         "layers with a local rope have its config");
  const RopeConfig& rope = layer.rope == LayerRope::global ? c.rope : *c.local_rope;
  if (rope.rotary_dim > layer.head_dim) {
    fail("rotary_dim {} is above head_dim {}", rope.rotary_dim, layer.head_dim);
  }
}

}  // namespace

std::string_view scaling_name(RopeScaling scaling) {
  static constexpr std::array<std::string_view, 6> kNames = {"none", "linear",   "llama3",
                                                             "yarn", "longrope", "proportional"};
  return kNames[static_cast<size_t>(scaling)];
}

std::string_view norm_name(plan::NormKind norm) {
  return norm == plan::NormKind::rms ? "rms" : "layer";
}

std::string_view layer_rope_name(LayerRope rope) {
  static constexpr std::array<std::string_view, 3> kNames = {"none", "global", "local"};
  return kNames[static_cast<size_t>(rope)];
}

std::string_view mixer_name(Mixer mixer) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "attention", "short convolution", "gated DeltaNet", "selective scan", "wkv", "none"};
  return kNames[static_cast<size_t>(mixer)];
}

plan::Activation activation_from_name(std::string_view name) {
  using plan::Activation;
  static constexpr std::array<std::pair<std::string_view, Activation>, 8> kTable = {{
      {"silu", Activation::silu},
      {"swish", Activation::silu},
      {"gelu", Activation::gelu_erf},
      {"gelu_new", Activation::gelu_tanh},
      {"gelu_fast", Activation::gelu_tanh},
      {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},
      {"relu2", Activation::relu_squared},
  }};
  const auto* row =
      std::ranges::find(kTable, name, &std::pair<std::string_view, Activation>::first);
  if (row == kTable.end()) fail("activation '{}' is not supported", name);
  return row->second;
}

std::optional<uint32_t> shared_size(const ModelConfig& config, uint32_t LayerConfig::*size) {
  if (config.layers.empty()) return {};
  const uint32_t first = config.layers[0].*size;
  const bool same = std::ranges::all_of(
      config.layers, [&](const LayerConfig& layer) { return layer.*size == first; });
  return same ? std::optional(first) : std::nullopt;
}

void check(const ModelConfig& c) {
  expect_range("vocab_size", c.vocab_size, kMaxDim);
  expect_range("hidden_size", c.hidden_size, kMaxDim);
  expect_range("num_layers", c.num_layers, kMaxLayers);
  if (std::ranges::find(c.layers, Mixer::attention, &LayerConfig::mixer) != c.layers.end()) {
    expect_range("num_heads", c.num_heads, 4096);
    expect_finite("attention_scale", c.attention_scale);
  }
  expect_range("max_position_embeddings", c.max_position_embeddings, kMaxContext);
  expect_none_or_positive("norm_eps", c.norm_eps);
  expect_finite("embedding_scale", c.embedding_scale);
  expect_finite("residual_scale", c.residual_scale);
  expect_finite("logit_scale", c.logit_scale);
  expect_finite("query_scale_beta", c.query_scale_beta);
  expect_none_or_positive("attention_softcap", c.attention_softcap);
  expect_none_or_positive("logit_softcap", c.logit_softcap);
  expect_none_or_positive("qkv_clip", c.qkv_clip);
  if (c.experts) check_experts(*c.experts);
  if (std::ranges::any_of(c.layers, [](const LayerConfig& layer) {
        return layer.mixer == Mixer::attention && layer.rope != LayerRope::none;
      })) {
    check_rope(c.rope);
  }
  if (c.local_rope) check_rope(*c.local_rope);
  if (c.query_scale_beta != 0.0F && c.query_scale_context == 0) {
    fail("query scaling needs original_max_position_embeddings");
  }
  if (c.layers.size() != c.num_layers) {
    fail("{} layers are described, expected {}", c.layers.size(), c.num_layers);
  }
  if ((c.layer_scales || c.per_layer_dim != 0) && !c.post_norms) {
    fail("layers with scales or embeddings of their own need norms after their parts");
  }
  if (c.streams) expect_range("num_streams", c.streams->count, 64);
  if (c.streams && (c.per_layer_dim == 0 || c.streams->count < 2)) {
    fail("{} streams with layers' embeddings of {} elements", c.streams->count, c.per_layer_dim);
  }
  if (c.per_layer_vocab > c.vocab_size) {
    fail("{} of {} tokens have embeddings for each layer", c.per_layer_vocab, c.vocab_size);
  }
  if (c.laurel_rank > kMaxDim) fail("laurel_rank is {}", c.laurel_rank);
  if (uint64_t{c.per_layer_dim} * c.num_layers > kMaxDim) {
    fail("per_layer_dim is {} in {} layers", c.per_layer_dim, c.num_layers);
  }
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    const LayerConfig& layer = c.layers[i];
    check_layer(layer, c);
    if (!layer.kv_of) continue;
    const uint32_t source = *layer.kv_of;
    if (source >= i || c.layers[source].kv_of || c.latent ||
        c.layers[source].mixer != Mixer::attention) {
      fail("layer {} takes the keys and values of layer {}", i, source);
    }
    if (c.layers[source].num_kv_heads != layer.num_kv_heads ||
        c.layers[source].head_dim != layer.head_dim) {
      fail("layer {} has other heads than layer {}, whose keys and values it takes", i, source);
    }
  }
}

}  // namespace wisp::model
