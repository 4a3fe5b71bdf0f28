// The ops of a plan: plain structs that name their inputs, outputs, weights and numbers. Both
// backends implement exactly what the comments here say; shapes are [rows, width], row-major f32
// unless said otherwise.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace wisp::plan {

// Index into Plan::values, Resources::weights, Resources::kv_layers and Resources::states.
enum class ValueId : uint32_t {};
enum class WeightId : uint32_t {};
enum class KvLayerId : uint32_t {};
enum class StateId : uint32_t {};

template <typename Id>
constexpr uint32_t index(Id id) {
  return static_cast<uint32_t>(id);
}

// Prompt tokens take the prefill kernels, generated and drafted tokens the decode kernels, whatever
// the step holds beside them: that is what keeps a request's bits independent of the batch.
enum class KernelClass : uint8_t { prefill, decode };

enum class Activation : uint8_t { silu, gelu_tanh, gelu_erf, relu, relu_squared, sigmoid };

// Which two elements of a head one rotation takes: (i, i + dim/2) or (2i, 2i + 1).
enum class RopeStyle : uint8_t { half, interleaved };

// out = table[token of the column] * scale, plus positions[position] where the model learned
// positions. Tokens come from the step (backend/backend.h).
struct Embed {
  WeightId table;  // [vocab_size, width], any weight type
  ValueId out;
  float scale = 1.0F;
  std::optional<WeightId> positions = {};  // f32 [positions, width]
};

enum class NormKind : uint8_t { rms, layer };

// A norm over groups of `group` elements (group divides the width):
//   rms:   out = x * (1 / sqrt(mean(x^2) + eps)) * (weight + weight_offset)
//   layer: out = (x - mean(x)) * (1 / sqrt(var(x) + eps)) * (weight + weight_offset) + bias
// Without a weight that factor is 1, without a bias that term 0. A weight and a bias have `group`
// elements, or the width of x: each group its own.
struct Norm {
  ValueId x;
  ValueId out;
  NormKind kind = NormKind::rms;
  std::optional<WeightId> weight = {};  // f32
  std::optional<WeightId> bias = {};    // f32, layer only
  float eps = 0.0F;
  float weight_offset = 0.0F;
  uint32_t group = 0;
  // What a backend may draw in (backend/gpu/fuse.h); plans that it is given have none of it.
  std::optional<ValueId> quantized = {};  // q8: the blocks of out
};

// out = out_scale * (a + scale * b); a b whose width divides that of a repeats.
struct Add {
  ValueId a;
  ValueId b;
  ValueId out;
  float scale = 1.0F;
  float out_scale = 1.0F;
};

// Blocks of 32 elements become int8: d = max|x| / 127, q = round(x / d) (q = 0 where d = 0). `out`
// is a q8 value.
struct Quantize {
  ValueId x;
  ValueId out;
};

// A root mean square norm of an op's results, drawn into it: `out` (q8_rms) has the q8 blocks of
// results * (weight + weight_offset), then f32 sums of squares of each 32 results. The factor
// 1 / sqrt(mean(x^2) + eps) is left to the reader.
struct NormOut {
  ValueId out;
  std::optional<WeightId> weight;  // f32 [rows]
  float weight_offset = 0.0F;
};

// How RopeKv normalises q and k, where they have weights.
struct HeadNorm {
  NormKind kind = NormKind::rms;
  float eps = 0.0F;
  float weight_offset = 0.0F;
  bool all_heads = false;   // all heads of q are one group, all of k another
  bool after_rope = false;  // else before it
  bool values = false;      // v too, each head by itself, without weights (rms only)
};

// Takes a column's heads as the projections made them, [q heads | k heads | v heads] side by side:
// clips all to +-clip (clip > 0), normalises q and k (when weights are given), rotates them by the
// column's position, scales q by query_scale[position], writes q to `out` and k, v to the KV pages
// of the layer. With `shared_kv` another RopeKv writes those pages, and qkv has the q heads alone.
struct RopeKv {
  ValueId qkv;  // [.., (num_heads + num_kv_heads) * head_dim + num_kv_heads * value_dim]
  ValueId out;  // [.., num_heads * head_dim]
  KvLayerId kv_layer;
  uint32_t num_heads = 0;
  // f32 [head_dim], or of all heads: each its own (always with norm.all_heads)
  std::optional<WeightId> q_norm;
  std::optional<WeightId> k_norm;
  std::optional<WeightId>
      rope;  // f32 [positions, rotary_dim]: cos at 2i, sin at 2i + 1; absent: no rotation
  std::optional<WeightId> query_scale;  // f32 [positions, 1]
  HeadNorm norm = {};
  RopeStyle style = RopeStyle::half;
  float clip = 0.0F;
  bool shared_kv = false;
};

// out[:, out_offset + i] = residual[:, i] + scale * (bias[i] + sum_j W[i, j] * x[:, j]).
// x f32: products and sums in f32; with `f16_inputs` x and the decoded weights are first rounded to
// f16 (saturating at +-65504), sums stay f32. x q8 (block-quantised weights only): integer sums
// over blocks of 32, scaled and added in f32.
struct Linear {
  ValueId x;
  WeightId weight;  // [rows, cols]: cols = width of x
  ValueId out;
  std::optional<WeightId> bias;     // f32 [rows]
  std::optional<ValueId> residual;  // [.., rows]
  float scale = 1.0F;
  uint32_t out_offset = 0;
  bool f16_inputs = false;
  // What a backend may draw in (backend/gpu/fuse.h); plans that it is given have none of it.
  std::optional<float> x_norm_eps;  // x is q8_rms: sums are multiplied by its RMS factor
  std::optional<NormOut> norm;
  std::optional<Activation> glu;  // out (q8) = act(first half of the rows) * second half
  std::optional<RopeKv> rope_kv;  // takes the rows as its qkv, which is not made; out is its out
};

// Multi-head latent attention (DeepSeek-V2, 2024): what the cache keeps of a column is one latent
// and one rotated key for all heads. Writes q = [q_latent | rotated q_rope] of each head to `out`,
// [latent | rotated k_rope] to the keys of the layer's one KV head, which hold its values.
struct LatentKv {
  ValueId q_latent;  // [.., num_heads * value_dim]
  ValueId q_rope;    // [.., num_heads * rotary_dim]
  ValueId latent;    // [.., value_dim]
  ValueId k_rope;    // [.., rotary_dim]
  ValueId out;       // [.., num_heads * head_dim], head_dim = value_dim + rotary_dim
  KvLayerId kv_layer;
  uint32_t num_heads = 0;
  WeightId rope;  // f32 [positions, rotary_dim], as for RopeKv
  RopeStyle style = RopeStyle::half;
};

// Grouped-query attention of each column over the keys of its sequence at positions 0..its own;
// query head h reads KV head h / (num_heads / num_kv_heads). score = scale * q.k; softcap c > 0: c
// * tanh(score / c); window w > 0 keeps only keys with position > own - w. Softmax over the kept
// keys (with sinks, one more score for each head that has no value), then the weighted sum of the
// values. With `f16_inputs` a backend may round q and the
// weights of the sum to halves, relative to the largest weight.
struct Attention {
  ValueId q;
  ValueId out;  // [.., num_heads * value_dim]
  KvLayerId kv_layer;
  uint32_t num_heads = 0;
  std::optional<WeightId> sinks = {};  // f32 [num_heads]
  float scale = 1.0F;
  float softcap = 0.0F;
  uint32_t window = 0;
  bool f16_inputs = false;
};

// Of each of `groups` parts of a row, which are [gate | up]: out = act(gate) * (up + up_offset).
// With limit > 0 gate is at most limit and up within +-limit first; silu is gate *
// sigmoid(alpha * gate). With a cutoff gate is first what it exceeds the mean of its part's gates
// by more than cutoff of their standard deviations, else 0 (Gemma 3n's sparsity).
struct Glu {
  ValueId x;  // [.., 2 * width of out]
  ValueId out;
  Activation activation = Activation::silu;
  uint32_t groups = 1;
  float alpha = 1.0F;
  float limit = 0.0F;
  float up_offset = 0.0F;
  std::optional<float> cutoff = {};
};

// out = act(x).
struct Activate {
  ValueId x;
  ValueId out;
  Activation activation = Activation::silu;
};

// out = cap * tanh(x / cap).
struct Softcap {
  ValueId x;
  ValueId out;
  float cap = 1.0F;
};

// out[:, i] = x[:, x_offset + i] * act(gate[:, gate_offset + i]); a gate of width 1 holds for the
// whole row.
struct Gate {
  ValueId x;
  ValueId gate;
  ValueId out;
  Activation activation = Activation::sigmoid;
  uint32_t x_offset = 0;
  uint32_t gate_offset = 0;
};

inline constexpr uint32_t kMaxTaps = 16;  // of a Conv

// Depthwise causal convolution along the columns of a sequence. With in[t, i] = x[t, x_offset + i]
// (times x[t, in_gate + i]) at position t and 0 before position 0:
//   out[t, i] = act(bias[i] + sum over j of weight[j, i] * in[t - (taps - 1) + j, i])
// (times x[t, out_gate + i]). The state has the last taps - 1 inputs, oldest first.
struct Conv {
  ValueId x;
  ValueId out;                        // [.., channels]
  StateId state;                      // [taps - 1, channels]
  WeightId weight;                    // f32 [taps, channels]
  std::optional<WeightId> bias = {};  // f32 [channels]
  std::optional<Activation> activation = {};
  uint32_t x_offset = 0;
  std::optional<uint32_t> in_gate = {};
  std::optional<uint32_t> out_gate = {};
};

// Gated DeltaNet (Yang et al. 2024): each of num_heads heads h has a matrix S, zeros at position 0.
// Key head h / (num_heads / num_key_heads), or with `tiled` h % num_key_heads, gives q and k, which
// are divided by sqrt(sum of squares
// + 1e-6), q by sqrt(key_dim) too; b and a are the head's in `gates`:
//   decay = exp(rate[h] * softplus(a + dt_bias[h])), delta = sigmoid(b) * (v - decay * S^T k)
//   S = decay * S + k delta^T, out = S^T q
struct DeltaNet {
  ValueId x;         // [.., 2 * num_key_heads * key_dim + num_heads * value_dim]: q, k, v
  ValueId gates;     // from gates_offset on: b of all heads, a of all heads
  ValueId out;       // [.., num_heads * value_dim]
  StateId state;     // [num_heads, key_dim, value_dim]
  WeightId rate;     // f32 [num_heads], below 0
  WeightId dt_bias;  // f32 [num_heads]
  uint32_t num_heads = 0;
  uint32_t num_key_heads = 0;
  uint32_t key_dim = 0;
  uint32_t value_dim = 0;
  uint32_t gates_offset = 0;
  bool tiled = false;

  uint32_t key_head(uint32_t head) const {
    return tiled ? head % num_key_heads : head / (num_heads / num_key_heads);
  }
};

inline constexpr uint32_t kMaxDeltaDim = 256;  // of a DeltaNet's keys and values

// Selective scan (Mamba, Gu and Dao 2023; Mamba-2, Dao and Gu 2024): each channel c has a vector h
// of state_size elements, zeros at position 0. It belongs to head c / (channels / num_heads), which
// shares B and C with the heads of its group:
//   dt = softplus(dt[head] + dt_bias[head]), within [dt_min, dt_max]
//   h = exp(dt * rate[head]) * h + dt * x[c] * B, out[c] = sum(C * h) + skip[head] * x[c]
struct Scan {
  ValueId x;         // channels of out's width from element 0 on
  ValueId dt;        // [num_heads] from dt_offset on
  ValueId bc;        // B of all groups from b_offset on, C from c_offset on
  ValueId out;       // [.., channels]
  StateId state;     // [channels, state_size]
  WeightId rate;     // f32 [num_heads, state_size], or [num_heads, 1]: the same for all; below 0
  WeightId dt_bias;  // f32 [num_heads]
  WeightId skip;     // f32 [num_heads]
  uint32_t num_heads = 0;
  uint32_t num_groups = 1;
  uint32_t state_size = 0;
  uint32_t dt_offset = 0;
  uint32_t b_offset = 0;
  uint32_t c_offset = 0;
  float dt_min = 0.0F;
  float dt_max = std::numeric_limits<float>::infinity();
};

inline constexpr uint32_t kMaxScanState = 256;  // state_size of a Scan

// RWKV-4's attention (Peng et al. 2023): each channel keeps weighted sums of the values before, a
// and b, scaled by exp(-p); at position 0 nothing. With w = first + k, all exponents less their
// maximum:
//   out = (a * exp(p) + v * exp(w)) / (b * exp(p) + exp(w))
//   a * exp(p) = a * exp(p + rate) + v * exp(k), b * exp(p) likewise with 1 for v
struct Wkv {
  ValueId k;
  ValueId v;
  ValueId out;
  StateId state;   // [3, channels]: a, b, p
  WeightId rate;   // f32 [channels], below 0
  WeightId first;  // f32 [channels]
};

enum class RouterScore : uint8_t { softmax, sigmoid };

// What a group of experts counts: its best expert, or its two best together.
enum class GroupScore : uint8_t { best, best_two };

// Chooses top_k of the experts for each column: those of the largest score + bias, the lower number
// where two are equal, best first. With num_groups > 1 only experts of the top_groups best groups,
// which are neighbours, are chosen from. Their weights are their scores (without bias), divided by
// their sum with `normalise`, times `scale` and expert_scales[expert].
struct Route {
  ValueId logits;  // [.., num_experts]
  ValueId out;     // [.., 2 * top_k]: the experts' numbers, then their weights
  uint32_t top_k = 1;
  RouterScore score = RouterScore::softmax;
  std::optional<WeightId> bias = {};  // f32 [num_experts]
  uint32_t num_groups = 1;
  uint32_t top_groups = 1;
  GroupScore group_score = GroupScore::best;
  bool normalise = false;
  float scale = 1.0F;
  std::optional<WeightId> expert_scales = {};  // f32 [num_experts]
};

// For each chosen expert s of a column, a matrix e of its own: out[:, s, i] = bias[e, i] +
// sum_j W[e, i, j] * x[:, j], or x[:, s, j] where x is top_k times as wide. Without routes the s-th
// part takes matrix s (heads). Inputs and sums are as in Linear.
struct ExpertLinear {
  ValueId x;                      // [.., cols] or [.., top_k * cols]
  std::optional<ValueId> routes;  // of Route
  WeightId weight;                // [num_experts * rows, cols]
  ValueId out;                    // [.., top_k * rows]
  uint32_t num_experts = 0;
  uint32_t top_k = 0;
  std::optional<WeightId> bias = {};  // f32 [num_experts * rows]
  bool f16_inputs = false;
};

// out = residual + scale * sum over s of weight_s * x[:, s], in the experts' order.
struct Combine {
  ValueId x;  // [.., top_k * width]
  ValueId routes;
  ValueId out;
  std::optional<ValueId> residual = {};
  float scale = 1.0F;
  std::optional<NormOut> norm = {};  // drawn in, as into a Linear
};

// A residual of n streams (AltUp, Baykal et al. 2023) is two values: the first stream, on which the
// layers work, and the others side by side. s_0 is the first, s_1, s_2, ... the others.

// out = s_p * rms(s_0) / sqrt(max(mean(s_p^2), floor)) of each other stream, side by side; with
// `mean` the mean of s_0 and these.
struct StreamMatch {
  ValueId first;  // [.., width]
  ValueId rest;   // [.., (n - 1) * width]
  ValueId out;
  float floor = 0.0F;
  bool mean = false;
};

// Of all streams q: out_q = s_q + sum over p of coefs[q * n + p] * s_p.
struct StreamPredict {
  ValueId first;
  ValueId rest;
  ValueId coefs;     // [.., n * n]
  ValueId out;       // the first stream
  ValueId out_rest;  // the others
};

// Of all streams q: out_q = s_q + (1 + coefs[q]) * (y - s_0); scaled = out_0 * scale.
struct StreamCorrect {
  ValueId first;
  ValueId rest;
  ValueId y;       // [.., width]
  ValueId coefs;   // [.., n]
  WeightId scale;  // f32 [width]
  ValueId out;
  ValueId out_rest;
  ValueId scaled;
};

// Picks the rows of the columns that want logits: out has one row each, in the step's order. Every
// later op works on such rows only; a backend may run those ops several times over parts of the
// rows.
struct SelectLogits {
  ValueId x;
  ValueId out;
};

// Chooses a token from each row of logits, which becomes the row's token and its slot's last token.
// Greedy rows take the lowest index of the largest logit, others are cut and drawn as the step and
// backend/sampling.h say. A row with a NaN or an infinity is reported as not finite.
struct Sample {
  ValueId logits;
};

using OpBody =
    std::variant<Embed, Norm, Add, Quantize, Linear, RopeKv, LatentKv, Attention, Glu, Activate,
                 Softcap, Gate, Conv, DeltaNet, Scan, Wkv, Route, ExpertLinear, Combine,
                 StreamMatch, StreamPredict, StreamCorrect, SelectLogits, Sample>;

struct Op {
  OpBody body;
  KernelClass kernel_class = KernelClass::decode;
  std::string name;  // where it belongs: "blk.3.attn.qkv"; profiles and errors use it
};

std::string_view op_kind(const OpBody& body);  // "linear", "norm", …

// What an op touches, in a fixed order; the verifier, the memory planner and the printer use these.
std::vector<ValueId> inputs(const OpBody& body);
std::vector<ValueId> outputs(const OpBody& body);
std::vector<WeightId> weights(const OpBody& body);
std::optional<StateId> state(const OpBody& body);

}  // namespace wisp::plan
