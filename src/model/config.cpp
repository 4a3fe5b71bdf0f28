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
constexpr uint32_t kMaxLayers = 4096;

void expect_range(std::string_view name, uint32_t value, uint32_t max) {
  if (value == 0 || value > max) fail("{} is {}, expected 1 to {}", name, value, max);
}

}  // namespace

std::string_view scaling_name(RopeScaling scaling) {
  static constexpr std::array<std::string_view, 4> kNames = {"none", "linear", "llama3", "yarn"};
  return kNames[static_cast<size_t>(scaling)];
}

plan::Activation activation_from_name(std::string_view name) {
  using plan::Activation;
  static constexpr std::array<std::pair<std::string_view, Activation>, 7> kTable = {{
      {"silu", Activation::silu},
      {"swish", Activation::silu},
      {"gelu", Activation::gelu_erf},
      {"gelu_new", Activation::gelu_tanh},
      {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},
      {"relu2", Activation::relu_squared},
  }};
  const auto* row =
      std::ranges::find(kTable, name, &std::pair<std::string_view, Activation>::first);
  if (row == kTable.end()) fail("activation '{}' is not supported", name);
  return row->second;
}

void check(const ModelConfig& c) {
  expect_range("vocab_size", c.vocab_size, kMaxDim);
  expect_range("hidden_size", c.hidden_size, kMaxDim);
  expect_range("intermediate_size", c.intermediate_size, kMaxDim);
  expect_range("num_layers", c.num_layers, kMaxLayers);
  expect_range("num_heads", c.num_heads, 4096);
  expect_range("num_kv_heads", c.num_kv_heads, 4096);
  expect_range("head_dim", c.head_dim, 4096);
  expect_range("max_position_embeddings", c.max_position_embeddings, 1U << 28);
  if (c.num_heads % c.num_kv_heads != 0) {
    fail("num_heads {} is not a multiple of num_kv_heads {}", c.num_heads, c.num_kv_heads);
  }
  if (c.head_dim % 2 != 0) fail("head_dim {} is odd", c.head_dim);
  if (c.rope.rotary_dim == 0 || c.rope.rotary_dim % 2 != 0 || c.rope.rotary_dim > c.head_dim) {
    fail("rotary_dim is {}, expected an even number up to head_dim {}", c.rope.rotary_dim,
         c.head_dim);
  }
  if (!(c.rms_norm_eps >= 0.0F) || !std::isfinite(c.rms_norm_eps)) {
    fail("rms_norm_eps is {}", c.rms_norm_eps);
  }
  if (!(c.rope.theta > 1.0) || !std::isfinite(c.rope.theta)) fail("rope_theta is {}", c.rope.theta);
  if (c.rope.scaling != RopeScaling::none && !(c.rope.factor > 0.0)) {
    fail("rope factor is {}", c.rope.factor);
  }
  const bool needs_original =
      c.rope.scaling == RopeScaling::llama3 || c.rope.scaling == RopeScaling::yarn;
  if (needs_original && c.rope.original_context == 0) {
    fail("rope scaling {} needs original_max_position_embeddings", scaling_name(c.rope.scaling));
  }
  if (c.query_scale_beta != 0.0F && c.query_scale_context == 0) {
    fail("query scaling needs original_max_position_embeddings");
  }
  if (c.layers.size() != c.num_layers) {
    fail("{} layers are described, expected {}", c.layers.size(), c.num_layers);
  }
}

}  // namespace wisp::model
