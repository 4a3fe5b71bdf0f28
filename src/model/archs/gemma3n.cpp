// Gemma 3n, text: a residual of several streams, projections of low rank beside attention, an
// embedding for each layer, sparse gates in the first layers, and last layers that share the keys
// and values of earlier ones. HF: modeling_gemma3n.py.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

// The number that a normal variable does not exceed with probability p, 0 < p < 1: by halving.
double normal_quantile(double p) {
  double low = -40.0;
  double high = 40.0;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

void read_gemma3n(ModelConfig& c, uint32_t num_streams, uint32_t active, uint32_t shared_layers) {
  read_gemma(c);
  c.attention_scale = 1.0F;
  c.qk_norm = QkNorm::each_head;
  c.v_norm = true;
  c.streams = StreamsConfig{.count = num_streams};
  if (active != 0) fail("altup_active_idx {} is not supported", active);
  use_local_rope(c);
  share_kv(c, shared_layers);
}

// The share of gates that are cut in each layer; without them the first ten of many layers cut
// 0.95.
void read_sparsity(const JsonFields& fields, ModelConfig& c) {
  std::vector<double> shares = fields.get_numbers("activation_sparsity_pattern");
  if (shares.empty()) {
    for (uint32_t i = 0; i < c.num_layers; ++i) {
      shares.push_back(c.num_layers > 10 && i < 10 ? 0.95 : 0.0);
    }
  }
  if (shares.size() != c.num_layers) {
    fail("field 'activation_sparsity_pattern' has {} numbers, expected {}", shares.size(),
         c.num_layers);
  }
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    if (!(shares[i] < 1.0)) fail("field 'activation_sparsity_pattern': {}", shares[i]);
    if (shares[i] > 0.0) c.layers[i].gate_cutoff = static_cast<float>(normal_quantile(shares[i]));
  }
}

void read_hf(const JsonFields& fields, ModelConfig& c) {
  read_window_pattern(fields, c, 5);
  if (!c.local_rope) {
    c.local_rope = RopeConfig{.theta = fields.require_number("rope_local_base_freq"),
                              .rotary_dim = c.rope.rotary_dim};
  }
  if (!fields.get_bool("altup_correct_scale").value_or(true)) {
    fail("field 'altup_correct_scale': false is not supported");
  }
  read_gemma3n(c, fields.require_uint("altup_num_inputs"),
               fields.get_uint("altup_active_idx").value_or(0),
               fields.require_uint("num_kv_shared_layers"));
  c.laurel_rank = fields.require_uint("laurel_rank");
  c.per_layer_vocab = fields.require_uint("vocab_size_per_layer_input");
  c.per_layer_dim = fields.require_uint("hidden_size_per_layer_input");
  c.logit_softcap = static_cast<float>(fields.get_number("final_logit_softcapping").value_or(30.0));
  read_sparsity(fields, c);
}

void read_gguf(const GgufFields& fields, ModelConfig& c) {
  set_windows(fields, c);
  c.activation = plan::Activation::gelu_tanh;
  c.local_rope = RopeConfig{.theta = fields.get_number("rope.freq_base_swa").value_or(10000.0),
                            .rotary_dim = c.rope.rotary_dim};
  read_gemma3n(c, fields.require_uint("altup.num_inputs"),
               fields.get_uint("altup.active_idx").value_or(0),
               fields.require_uint("attention.shared_kv_layers"));
  c.streams->layout = ExpertLayout::stacked;
  c.laurel_rank = 64;  // which the file does not say, nor the cap
  c.per_layer_dim = fields.require_uint("embedding_length_per_layer_input");
  c.logit_softcap = static_cast<float>(fields.get_number("final_logit_softcapping").value_or(30.0));
  const std::vector<double>* cutoffs = fields.find_floats("activation_sparsity_scale");
  if (cutoffs == nullptr || cutoffs->size() != c.num_layers) {
    fail("metadata key '{}.activation_sparsity_scale': expected a number for each of {} layers",
         fields.arch(), c.num_layers);
  }
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    const double cutoff = (*cutoffs)[i];  // below all gates: -inf
    if (!(cutoff < std::numeric_limits<double>::infinity())) fail("a cutoff is {}", cutoff);
    if (std::isfinite(cutoff)) c.layers[i].gate_cutoff = static_cast<float>(cutoff);
  }
}

}  // namespace

const Arch kGemma3n = {
    .name = "gemma3n",
    .hf_model_types = {"gemma3n_text"},
    .gguf_architectures = {"gemma3n"},
    .hf_names = gemma_names(),
    .hf_defaults =
        R"({"tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 256,
            "max_position_embeddings": 32768, "sliding_window": 512,
            "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144,
            "altup_num_inputs": 4, "laurel_rank": 64,
            "num_kv_shared_layers": 15, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0})",
    .from_hf = read_hf,
    .from_gguf = read_gguf,
};

}  // namespace wisp::model
