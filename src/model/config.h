// What a family's forward needs to know, as numbers: filled by config_hf.cpp or config_gguf.cpp,
// then by the family.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/op.h"

namespace wisp::model {

// The most positions of a sequence.
inline constexpr uint32_t kMaxContext = 1U << 28;

enum class RopeScaling : uint8_t { none, linear, llama3, yarn, longrope, proportional };

std::string_view scaling_name(RopeScaling scaling);

// Rotary position embedding (Su et al. 2021) with the length extensions of published checkpoints.
struct RopeConfig {
  double theta = 10000.0;
  uint32_t rotary_dim = 0;  // leading elements of a head that rotate
  plan::RopeStyle style = plan::RopeStyle::half;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double proportion = 1.0;        // proportional: of the pairs that turn, the first ones
  uint32_t original_context = 0;  // positions the model was trained on before scaling
  double low_freq_factor = 1.0;   // llama3
  double high_freq_factor = 4.0;  // llama3
  double beta_fast = 32.0;        // yarn
  double beta_slow = 1.0;         // yarn
  bool truncate = true;           // yarn: whole-number correction range
  std::optional<double> attention_factor = {};  // yarn: overrides the one computed from the factor
  std::optional<double> mscale = {};            // yarn
  std::optional<double> mscale_all_dim = {};    // yarn
  // longrope: divisors of the frequencies, for contexts up to the original one and for longer ones
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // M-RoPE: how many pairs turn by each axis of a position (time, height, width); empty: positions
  // have one axis. Pairs lie axis by axis, or take turns.
  std::vector<uint32_t> sections = {};
  bool interleaved_sections = false;
  bool stored_factors = false;  // the file has to have rope_freqs, without which more pairs turn
};

// What mixes the tokens of a sequence in a layer.
enum class Mixer : uint8_t {
  attention,
  short_conv,  // a gated convolution (LFM2)
  delta_net,   // a convolution, then Gated DeltaNet (plan::DeltaNet)
  scan,        // a convolution, then a selective scan (plan::Scan): Mamba
  wkv,         // RWKV-4's attention; the network shifts tokens too
  none,        // the layer is a network alone
};

enum class LayerRope : uint8_t { none, global, local };

std::string_view norm_name(plan::NormKind norm);
std::string_view layer_rope_name(LayerRope rope);
std::string_view mixer_name(Mixer mixer);

struct LayerConfig {
  Mixer mixer = Mixer::attention;
  uint32_t num_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t intermediate_size = 0;  // of its own network, if it has one
  uint32_t window = 0;             // sliding window in tokens, 0: all
  LayerRope rope = LayerRope::global;
  bool network = true;          // there is a feed-forward network
  bool experts = false;         // the feed-forward network is one of experts (ModelConfig::experts)
  bool keys_as_values = false;  // without a v_proj the values are what k_proj gives
  std::optional<float> gate_cutoff = {};  // of its own network, see plan::Glu
  // The earlier layer whose keys and values it attends to; absent: it makes its own.
  std::optional<uint32_t> kv_of = {};
};

// Gives a layer a mixer that is no attention, and so no rope.
inline void set_mixer(LayerConfig& layer, Mixer mixer) {
  layer.mixer = mixer;
  layer.rope = LayerRope::none;
}

// How a checkpoint holds the matrices of experts.
enum class ExpertLayout : uint8_t {
  single,                 // a tensor for each expert's gate, up and down
  stacked,                // one for all experts' gate, up and down: [experts, rows, columns]
  transposed_interleaved  // [experts, columns, rows], gate and up in one, row by row in turns
};

// Layers that choose a few of many feed-forward networks for each token.
struct ExpertsConfig {
  uint32_t num_experts = 0;
  uint32_t top_k = 0;
  uint32_t intermediate_size = 0;         // of one expert
  uint32_t shared_intermediate_size = 0;  // of the network that all tokens take; 0: none
  bool shared_gate = false;               // what that gives is gated by a projection to one value
  ExpertLayout layout = ExpertLayout::single;
  plan::RouterScore score = plan::RouterScore::softmax;
  bool correction_bias = false;  // added to the scores for the choice only
  bool normalise = false;        // the weights of the chosen add up to `scale`
  float scale = 1.0F;
  bool fused_gate_up = false;  // a tensor for gate and up
  bool expert_scales = false;  // each expert's weight is multiplied by a number of its own
  // The layer's own network runs beside, each between norms of its own, and the router reads the
  // residual stream, normalised and times router_scale.
  bool beside_network = false;
  float router_scale = 1.0F;
  uint32_t num_groups = 1;
  uint32_t top_groups = 1;
  plan::GroupScore group_score = plan::GroupScore::best;
};

// Multi-head latent attention: keys and values of all heads are made of one latent. Layers'
// head_dim is nope_dim + rope_dim.
struct LatentConfig {
  uint32_t q_rank = 0;     // of the latent that queries are made of; 0: of the hidden state itself
  uint32_t kv_rank = 0;    // elements of the latent
  uint32_t nope_dim = 0;   // elements of a head that do not rotate
  uint32_t rope_dim = 0;   // those that do
  uint32_t value_dim = 0;  // of a head
};

// Gated DeltaNet (plan::DeltaNet).
struct DeltaNetConfig {
  uint32_t num_heads = 0;
  uint32_t num_key_heads = 0;
  uint32_t key_dim = 0;
  uint32_t value_dim = 0;
  bool tiled = false;

  uint32_t values() const { return num_heads * value_dim; }
  uint32_t channels() const { return 2 * num_key_heads * key_dim + values(); }  // convolved
};

// A selective scan (plan::Scan).
struct ScanConfig {
  uint32_t inner_size = 0;  // channels
  uint32_t num_heads = 0;   // as many in Mamba
  uint32_t num_groups = 1;
  uint32_t state_size = 0;
  // Of the projections between which each channel's dt comes of the convolved ones, as B and C do
  // (Mamba); 0: dt, B and C come of the layer's input (Mamba-2).
  uint32_t dt_rank = 0;
  float dt_min = 0.0F;
  float dt_max = std::numeric_limits<float>::infinity();
  uint32_t norm_group = 0;  // of the norm behind the gate; 0: none

  uint32_t channels() const {  // convolved
    return inner_size + (dt_rank == 0 ? 2 * num_groups * state_size : 0);
  }
};

// A residual of several streams (AltUp, see plan::StreamMatch), of which layers work on the first.
// Layers then have embeddings of their own, which are added to the others.
struct StreamsConfig {
  uint32_t count = 0;
  ExpertLayout layout = ExpertLayout::single;  // of the matrices that make and join the others
};

// How q and k are normalised.
enum class QkNorm : uint8_t {
  none,
  each_head,  // each head by itself, with one vector of weights for all
  own_heads,  // each head by itself, with weights of its own
  all_heads,  // all heads as one vector
};

// How a checkpoint holds the rows of q, k and v.
enum class QkvLayout : uint8_t {
  separate,
  stacked,  // one tensor: q, k, v
  grouped,  // one tensor: for each KV head its q heads, k, v
};

// How attention and feed-forward network add to the residual stream.
enum class Residual : uint8_t {
  sequential,       // x += attention(norm(x)); x += ffn(norm(x))
  parallel,         // x += attention(norm(x)) + ffn(other_norm(x))
  parallel_shared,  // x += attention(norm(x)) + ffn(norm(x))
};

struct ModelConfig {
  std::string family;  // name of the Arch
  uint32_t vocab_size = 0;
  uint32_t hidden_size = 0;
  uint32_t num_layers = 0;
  uint32_t num_heads = 0;
  uint32_t max_position_embeddings = 0;
  plan::NormKind norm = plan::NormKind::rms;
  float norm_eps = 0.0F;
  float norm_weight_offset = 0.0F;  // weights are stored less this
  bool norm_weights = true;         // else norms only normalise
  bool pre_norms = true;            // before attention and feed-forward network
  bool post_norms = false;          // of what they give, before it is added
  bool sub_norms = false;           // before o_proj and down_proj
  QkNorm qk_norm = QkNorm::none;
  bool qk_norm_after_rope = false;
  bool output_gate = false;  // q_proj has a gate of what attention gives behind each head's rows
  bool v_norm = false;       // of each head, without weights
  QkvLayout qkv_layout = QkvLayout::separate;
  Residual residual = Residual::sequential;
  plan::Activation activation = plan::Activation::silu;
  bool gated_ffn = true;       // down(act(gate(x)) * up(x)), else down(act(up(x)))
  bool fused_gate_up = false;  // one tensor: gate, up
  float glu_alpha = 1.0F;      // see plan::Glu, likewise the next two
  float glu_limit = 0.0F;
  float glu_up_offset = 0.0F;
  std::optional<ExpertsConfig> experts;
  std::optional<LatentConfig> latent;
  std::optional<StreamsConfig> streams;
  std::optional<DeltaNetConfig> delta_net;
  std::optional<ScanConfig> scan;
  uint32_t conv_taps = 0;         // of convolutions along the sequence
  std::optional<bool> conv_bias;  // of them and, in layers of their own, their projections
  std::optional<bool> scan_bias;  // of a scan's projections
  uint32_t laurel_rank = 0;       // of a projection of low rank beside attention (LAuReL); 0: none
  bool attention_sinks = false;   // a score for each head that takes part in the softmax
  bool transposed = false;        // projections are stored [columns, rows]
  uint32_t num_extra_layers = 0;  // layers behind the last one that only drafting takes
  bool tie_word_embeddings = false;
  bool learned_positions = false;
  // Whether projections have biases: those for q, k and v (latent attention's first ones), o_proj,
  // those of networks. Absent: as the file has them.
  std::optional<bool> qkv_bias;
  std::optional<bool> o_bias;
  std::optional<bool> ffn_bias;
  float qkv_clip = 0.0F;  // 0: none; likewise the soft caps
  float attention_scale = 0.0F;
  float attention_softcap = 0.0F;
  float logit_softcap = 0.0F;
  float embedding_scale = 1.0F;
  float residual_scale = 1.0F;  // of what attention and feed-forward network add
  bool embedding_norm = false;  // of the embeddings, before the first layer
  bool layer_scales = false;    // what a layer gives is multiplied by a number of its own
  uint32_t attention_size = 0;  // channels of wkv
  uint32_t per_layer_dim = 0;   // elements of a token's own embedding for each layer; 0: none
  // Tokens that have one, the others' is zero; 0: as many as the file's table has.
  uint32_t per_layer_vocab = 0;
  float logit_scale = 1.0F;
  RopeConfig rope;
  std::optional<RopeConfig> local_rope;  // of layers that say so
  // Queries are scaled by 1 + beta * ln(1 + floor(position / query_scale_context)); beta 0: not.
  float query_scale_beta = 0.0F;
  uint32_t query_scale_context = 0;
  std::vector<LayerConfig> layers;  // num_layers of them
};

// A size that all layers have; nullopt where they differ.
std::optional<uint32_t> shared_size(const ModelConfig& config, uint32_t LayerConfig::*size);

// Calls visit(name, value) for each field, in order; inspect and tests use it. Values are integers,
// floats, bools or strings; what layers differ in is summed up by the caller.
template <typename Visit>
void visit_fields(const ModelConfig& c, Visit&& visit) {
  visit("family", c.family);
  visit("vocab_size", c.vocab_size);
  const auto visit_shared = [&](std::string_view name, uint32_t LayerConfig::*size) {
    if (const auto value = shared_size(c, size)) visit(name, *value);
  };
  visit("hidden_size", c.hidden_size);
  visit_shared("intermediate_size", &LayerConfig::intermediate_size);
  visit("num_layers", c.num_layers);
  if (c.num_heads != 0) visit("num_heads", c.num_heads);
  visit_shared("num_kv_heads", &LayerConfig::num_kv_heads);
  visit_shared("head_dim", &LayerConfig::head_dim);
  visit("max_position_embeddings", c.max_position_embeddings);
  visit("norm", norm_name(c.norm));
  visit("norm_eps", c.norm_eps);
  visit("tie_word_embeddings", c.tie_word_embeddings);
  if (c.num_heads != 0) visit("attention_scale", c.attention_scale);
  if (c.attention_softcap != 0.0F) visit("attention_softcap", c.attention_softcap);
  if (c.logit_softcap != 0.0F) visit("logit_softcap", c.logit_softcap);
  if (c.embedding_scale != 1.0F) visit("embedding_scale", c.embedding_scale);
  if (c.residual_scale != 1.0F) visit("residual_scale", c.residual_scale);
  if (c.per_layer_dim != 0) visit("per_layer_dim", c.per_layer_dim);
  if (c.streams) visit("num_streams", c.streams->count);
  if (c.laurel_rank != 0) visit("laurel_rank", c.laurel_rank);
  if (c.conv_taps != 0) visit("conv_taps", c.conv_taps);
  if (c.delta_net) {
    visit("delta_net_heads", c.delta_net->num_heads);
    visit("delta_net_key_heads", c.delta_net->num_key_heads);
    visit("delta_net_key_dim", c.delta_net->key_dim);
    visit("delta_net_value_dim", c.delta_net->value_dim);
  }
  if (c.scan) {
    visit("scan_inner_size", c.scan->inner_size);
    visit("scan_heads", c.scan->num_heads);
    visit("scan_groups", c.scan->num_groups);
    visit("scan_state_size", c.scan->state_size);
  }
  if (c.logit_scale != 1.0F) visit("logit_scale", c.logit_scale);
  if (c.qkv_clip != 0.0F) visit("qkv_clip", c.qkv_clip);
  if (c.latent) {
    visit("q_lora_rank", c.latent->q_rank);
    visit("kv_lora_rank", c.latent->kv_rank);
  }
  if (c.experts) {
    visit("num_experts", c.experts->num_experts);
    visit("num_experts_per_token", c.experts->top_k);
    visit("expert_intermediate_size", c.experts->intermediate_size);
    visit("shared_intermediate_size", c.experts->shared_intermediate_size);
  }
  if (c.rope.rotary_dim != 0) {
    visit("rope_theta", c.rope.theta);
    visit("rotary_dim", c.rope.rotary_dim);
    visit("rope_scaling", scaling_name(c.rope.scaling));
  }
  if (c.rope.scaling != RopeScaling::none) {
    visit("rope_factor", c.rope.factor);
    visit("rope_original_context", c.rope.original_context);
  }
  if (c.local_rope) visit("local_rope_theta", c.local_rope->theta);
  if (c.query_scale_beta != 0.0F) visit("query_scale_beta", c.query_scale_beta);
}

// The activation of a config's name ("silu", "gelu_pytorch_tanh", …). Throws Error naming an
// unknown one.
plan::Activation activation_from_name(std::string_view name);

// Throws Error naming the field that is zero, too large or does not fit the others.
void check(const ModelConfig& config);

}  // namespace wisp::model
