// From config and weights to a plan: embed, layers, head.
#include <cmath>

#include "base/error.h"
#include "model/mixer_writer.h"

namespace wisp::model {
namespace {

using plan::KernelClass;
using plan::Rows;

constexpr float kStreamFloor = 1e-5F;  // of the mean square of a stream that is made

class Builder : MixerWriter {
 public:
  Builder(const Model& model, const PlanOptions& options) : MixerWriter(model, options) {}

  plan::Plan build() && {
    const ModelConfig& c = model_.config;
    ValueId x = value("x", c.hidden_size);
    add(plan::Embed{.table = model_.token_embedding,
                    .out = x,
                    .scale = c.embedding_scale,
                    .positions = model_.position_embedding},
        "embed");
    x = norm(x, model_.embedding_norm, "embed.norm");
    if (model_.per_layer) per_layer_ = per_layer_embeddings(x, *model_.per_layer);
    if (model_.streams) rest_ = other_streams(x);
    for (uint32_t i = 0; i < c.num_layers; ++i) x = layer(x, i);
    head(model_.streams ? joined_streams(x) : x);
    return std::move(plan_);
  }

 private:
  // Every layer's own embedding of the token, side by side: what the table has for it and what the
  // common embedding x gives, in equal parts.
  ValueId per_layer_embeddings(ValueId x, const PerLayerEmbedding& w) {
    const ModelConfig& c = model_.config;
    const uint32_t width = c.num_layers * c.per_layer_dim;
    const ValueId own = value("per_layer.own", width);
    add(
        plan::Embed{
            .table = w.table, .out = own, .scale = std::sqrt(static_cast<float>(c.per_layer_dim))},
        "per_layer.embed");
    const ValueId common = linear(x, w.proj, "per_layer.proj", {},
                                  1.0F / std::sqrt(static_cast<float>(c.hidden_size)));
    const ValueId normed = value("per_layer.norm", width);
    add(plan::Norm{.x = common,
                   .out = normed,
                   .kind = c.norm,
                   .weight = w.norm.weight,
                   .eps = c.norm_eps,
                   .weight_offset = c.norm_weight_offset,
                   .group = c.per_layer_dim},
        "per_layer.norm");
    const ValueId out = value("per_layer", width);
    add(plan::Add{.a = normed, .b = own, .out = out, .out_scale = std::sqrt(0.5F)},
        "per_layer.add");
    return out;
  }

  // The residual streams but the first, made of it.
  ValueId other_streams(ValueId x) {
    const plan::WeightId weight = model_.streams->proj.weight;
    const uint32_t width = model_.weights.list[plan::index(weight)].rows;
    const ValueId made = linear(x, {{{weight, {}, width}}, width}, "streams.proj");
    const ValueId out = value("streams", width);
    add(plan::StreamMatch{.first = x, .rest = made, .out = out, .floor = kStreamFloor},
        "streams.match");
    return out;
  }

  ValueId joined_streams(ValueId x) {
    const uint32_t others = model_.config.streams->count - 1;
    const ValueId rest =
        part_linear(*rest_, model_.streams->unembed.weight, others, "streams.join");
    const ValueId out = value("streams.mean", plan_[x].width);
    add(
        plan::StreamMatch{
            .first = x, .rest = rest, .out = out, .floor = kStreamFloor, .mean = true},
        "streams.mean");
    return out;
  }

  // How a layer mixes the streams, by its matrix `coefs` and the state x of the first one.
  ValueId stream_coefs(ValueId x, const StreamWeights& w, const Projection& coefs,
                       const std::string& name) {
    const ValueId routed =
        linear(norm(x, w.router_norm, name + ".norm"), w.router, name + ".router", {},
               1.0F / static_cast<float>(model_.config.hidden_size));
    const ValueId modes = value(name + ".modes", plan_[routed].width);
    add(plan::Softcap{.x = routed, .out = modes, .cap = 1.0F}, name + ".tanh");
    return linear(modes, coefs, name + ".coefs");
  }

  // The first stream as the layer takes it.
  ValueId predict_streams(ValueId x, const StreamWeights& w, const std::string& name) {
    const plan::StreamPredict op{.first = x,
                                 .rest = *rest_,
                                 .coefs = stream_coefs(x, w, w.predict, name),
                                 .out = value(name, plan_[x].width),
                                 .out_rest = value(name + ".rest", plan_[*rest_].width)};
    add(op, name);
    rest_ = op.out_rest;
    return op.out;
  }

  // The first stream after the layer, which made y of x; the others get the layer's own embedding.
  ValueId correct_streams(ValueId x, ValueId y, uint32_t index, const std::string& prefix) {
    const LayerWeights& w = model_.layers[index];
    const std::string name = prefix + "correct";
    const uint32_t width = plan_[x].width;
    const plan::StreamCorrect op{.first = x,
                                 .rest = *rest_,
                                 .y = y,
                                 .coefs = stream_coefs(y, *w.streams, w.streams->correct, name),
                                 .scale = w.streams->scale,
                                 .out = value(name, width),
                                 .out_rest = value(name + ".rest", plan_[*rest_].width),
                                 .scaled = value(name + ".scaled", width)};
    add(op, name);
    rest_ = add_per_layer(op.out_rest, op.scaled, index, prefix);
    return op.out;
  }

  // LAuReL (Menghani et al. 2024): x and a projection of it of low rank.
  ValueId laurel(ValueId x, const LaurelWeights& w, const std::string& name) {
    const ValueId low = linear(x, w.left, name + ".left");
    return add_normed(x, linear(low, w.right, name + ".right"), w.norm, name, 1.0F);
  }

  // The residual stream with what the layer's own embedding of the token adds, behind a gate made
  // of x.
  ValueId add_per_layer(ValueId stream, ValueId x, uint32_t index, const std::string& prefix) {
    const ModelConfig& c = model_.config;
    const LayerWeights& w = model_.layers[index];
    const std::string name = prefix + "per_layer.";
    const ValueId gate = linear(x, w.per_layer->gate, name + "gate");
    const ValueId gated = value(name + "gated", c.per_layer_dim);
    add(plan::Gate{.x = *per_layer_,
                   .gate = gate,
                   .out = gated,
                   .activation = c.activation,
                   .x_offset = index * c.per_layer_dim},
        name + "gated");
    return add_projected(stream, gated, w.per_layer->proj, w.per_layer->norm, name + "proj",
                         w.scale);
  }

  ValueId layer(ValueId x, uint32_t index) {
    const LayerWeights& w = model_.layers[index];
    const LayerConfig& l = model_.config.layers[index];
    const float network_scale = w.per_layer ? 1.0F : w.scale;
    const Residual residual = model_.config.residual;
    const std::string prefix = fmt::format("layer.{}.", index);
    if (w.streams) x = predict_streams(x, *w.streams, prefix + "predict");
    ValueId normed = x;
    ValueId sum = x;
    if (l.mixer != Mixer::none) {
      normed = norm(x, w.attention_norm, prefix + "attn.norm");
      const ValueId mixed =
          norm(mix(normed, index, prefix), w.attention_sub_norm, prefix + "attn.sub_norm");
      sum = add_projected(x, mixed, w.o_proj, w.attention_post_norm, prefix + "attn.o");
    }
    if (!l.network) return sum;
    if (w.laurel) sum = mean_power(sum, laurel(normed, *w.laurel, prefix + "laurel"), prefix);
    const ValueId ffn_x =
        residual == Residual::parallel_shared
            ? normed
            : norm(residual == Residual::parallel ? x : sum, w.ffn_norm, prefix + "ffn.norm");
    if (w.shifted) return add_shifted(sum, ffn_x, w, prefix);
    const bool beside = w.experts && model_.config.experts->beside_network;
    if (w.experts && !beside) return add_experts(sum, ffn_x, w, prefix);
    const ValueId inner =
        norm(ffn(ffn_x, w.up, l.intermediate_size, prefix + "ffn.", l.gate_cutoff), w.ffn_sub_norm,
             prefix + "ffn.sub_norm");
    ValueId out{};
    if (beside) {
      const ValueId network = linear(inner, w.down_proj, prefix + "ffn.down");
      out = add_normed(sum, beside_experts(sum, network, *w.experts, prefix), w.ffn_post_norm,
                       prefix + "ffn", network_scale);
    } else {
      out = add_projected(sum, inner, w.down_proj, w.ffn_post_norm, prefix + "ffn.down",
                          network_scale);
    }
    if (w.streams) return correct_streams(x, out, index, prefix);
    return w.per_layer ? add_per_layer(out, out, index, prefix) : out;
  }

  // What o_proj reads.
  ValueId mix(ValueId x, uint32_t index, const std::string& prefix) {
    const LayerWeights& w = model_.layers[index];
    if (w.short_conv) return short_conv(x, w, prefix);
    if (w.delta_net) return delta_net(x, w, prefix);
    if (w.scan) return scan(x, w, prefix);
    if (w.wkv) return wkv(x, w, prefix);
    return w.latent ? latent_attention(x, index, prefix) : attention(x, index, prefix);
  }

  // (a + b) / sqrt(2).
  ValueId mean_power(ValueId a, ValueId b, const std::string& prefix) {
    const ValueId out = value(prefix + "laurel.mean", plan_[a].width);
    add(plan::Add{.a = a, .b = b, .out = out, .out_scale = std::sqrt(0.5F)},
        prefix + "laurel.mean");
    return out;
  }

  // What down_proj reads.
  ValueId ffn(ValueId x, const Projection& up, uint32_t width, const std::string& prefix,
              std::optional<float> cutoff = {}) {
    const ValueId rows = linear(x, up, prefix + (model_.config.gated_ffn ? "gate_up" : "up"));
    return activate(rows, width, 1, prefix, cutoff);
  }

  // The residual stream with what the chosen experts make of x, and the shared network where there
  // is one.
  ValueId add_experts(ValueId stream, ValueId x, const LayerWeights& layer,
                      const std::string& prefix) {
    const ExpertWeights& w = *layer.experts;
    const std::string name = prefix + "experts.";
    const ValueId routes = route(x, w, name);
    const ValueId down = chosen_experts(x, routes, w, name);
    if (w.shared_up) stream = add_shared(stream, x, w, prefix + "shared.");
    return combine(down, routes, stream, model_.config.residual_scale, name);
  }

  // What the layer's own network and the chosen experts make of the residual stream, each between
  // norms of its own.
  ValueId beside_experts(ValueId stream, ValueId network, const ExpertWeights& w,
                         const std::string& prefix) {
    const std::string name = prefix + "experts.";
    const ValueId routes = route(norm(stream, w.router_norm, name + "router.norm"), w, name);
    const ValueId x = norm(stream, w.norm, name + "norm");
    const ValueId chosen = combine(chosen_experts(x, routes, w, name), routes, {}, 1.0F, name);
    const ValueId a = norm(network, w.network_post_norm, prefix + "ffn.network_post_norm");
    const ValueId b = norm(chosen, w.post_norm, name + "post_norm");
    const ValueId out = value(name + "sum", plan_[stream].width);
    add(plan::Add{.a = a, .b = b, .out = out}, name + "add");
    return out;
  }

  // What each of a column's experts gives, side by side.
  ValueId chosen_experts(ValueId x, ValueId routes, const ExpertWeights& w,
                         const std::string& name) {
    const ExpertsConfig& e = *model_.config.experts;
    const ValueId up = expert_linear(x, routes, w.up, name + "up");
    const ValueId inner = activate(up, e.intermediate_size, e.top_k, name);
    return expert_linear(inner, routes, w.down, name + "down");
  }

  ValueId combine(ValueId x, ValueId routes, std::optional<ValueId> residual, float scale,
                  const std::string& name) {
    const ValueId out = value(name + "out", model_.config.hidden_size);
    add(plan::Combine{.x = x, .routes = routes, .out = out, .residual = residual, .scale = scale},
        name + "combine");
    return out;
  }

  // Routing is exact in every mode: near a tie rounding would choose other experts.
  ValueId route(ValueId x, const ExpertWeights& w, const std::string& name) {
    const ExpertsConfig& e = *model_.config.experts;
    const ValueId logits = value(name + "logits", e.num_experts);
    add(plan::Linear{.x = x,
                     .weight = w.router.parts[0].weight,
                     .out = logits,
                     .bias = w.router.parts[0].bias,
                     .residual = {},
                     .scale = e.router_scale},
        name + "router");
    const ValueId routes = value(name + "routes", 2 * e.top_k);
    add(plan::Route{.logits = logits,
                    .out = routes,
                    .top_k = e.top_k,
                    .score = e.score,
                    .bias = w.correction,
                    .num_groups = e.num_groups,
                    .top_groups = e.top_groups,
                    .group_score = e.group_score,
                    .normalise = e.normalise,
                    .scale = e.scale,
                    .expert_scales = w.scales},
        name + "route");
    return routes;
  }

  ValueId expert_linear(ValueId x, ValueId routes, const ExpertMatrix& matrix,
                        const std::string& name) {
    const ExpertsConfig& e = *model_.config.experts;
    const ValueId out = value(name, e.top_k * matrix.rows);
    add(plan::ExpertLinear{.x = input_of(matrix.weight, x, name),
                           .routes = routes,
                           .weight = matrix.weight,
                           .out = out,
                           .num_experts = e.num_experts,
                           .top_k = e.top_k,
                           .bias = matrix.bias,
                           .f16_inputs = f16_inputs(matrix.weight)},
        name);
    return out;
  }

  ValueId add_shared(ValueId stream, ValueId x, const ExpertWeights& w, const std::string& name) {
    const ExpertsConfig& e = *model_.config.experts;
    const float scale = model_.config.residual_scale;
    const ValueId inner = ffn(x, *w.shared_up, e.shared_intermediate_size, name);
    if (!w.shared_gate) return linear(inner, w.shared_down, name + "down", stream, scale);
    const ValueId down = linear(inner, w.shared_down, name + "down");
    const ValueId gate = linear(x, *w.shared_gate, name + "gate");
    const ValueId out = value(name + "sum", plan_[stream].width);
    add(plan::Add{.a = stream, .b = gated(down, gate, name + "gated"), .out = out, .scale = scale},
        name + "add");
    return out;
  }

  std::optional<plan::WeightId> rope(LayerRope choice) const {
    if (choice == LayerRope::none) return {};
    return choice == LayerRope::local ? model_.local_rope : model_.rope;
  }

  ValueId attention(ValueId x, uint32_t index, const std::string& prefix) {
    const ModelConfig& c = model_.config;
    const LayerConfig& l = c.layers[index];
    const LayerWeights& w = model_.layers[index];
    const ValueId qkv = linear(x, w.qkv, prefix + "attn.qkv");
    const ValueId q = value(prefix + "attn.q", c.num_heads * l.head_dim);
    add(plan::RopeKv{.qkv = qkv,
                     .out = q,
                     .kv_layer = model_.layers[index].kv_layer,
                     .num_heads = c.num_heads,
                     .q_norm = w.q_norm,
                     .k_norm = w.k_norm,
                     .rope = rope(l.rope),
                     .query_scale = model_.query_scale,
                     .norm = {.kind = c.norm,
                              .eps = c.norm_eps,
                              .weight_offset = c.norm_weight_offset,
                              .all_heads = c.qk_norm == QkNorm::all_heads,
                              .after_rope = c.qk_norm_after_rope,
                              .values = c.v_norm},
                     .style = c.rope.style,
                     .clip = c.qkv_clip,
                     .shared_kv = l.kv_of.has_value()},
        prefix + "attn.rope_kv");
    const ValueId out = value(prefix + "attn.out", c.num_heads * l.head_dim);
    add(plan::Attention{.q = q,
                        .out = out,
                        .kv_layer = model_.layers[index].kv_layer,
                        .num_heads = c.num_heads,
                        .sinks = w.sinks,
                        .scale = c.attention_scale,
                        .softcap = c.attention_softcap,
                        .window = l.window,
                        .f16_inputs = fast_prefill()},
        prefix + "attn");
    if (!w.output_gate) return out;
    const ValueId gate = linear(x, *w.output_gate, prefix + "attn.gate");
    return gated(out, gate, prefix + "attn.gated");
  }

  // The heads work on the latents themselves: their keys' matrices are applied to the queries,
  // their values' matrices to what attention gives.
  ValueId latent_attention(ValueId x, uint32_t index, const std::string& prefix) {
    const ModelConfig& c = model_.config;
    const LatentConfig& l = *c.latent;
    const LatentWeights& w = *model_.layers[index].latent;
    const std::string name = prefix + "attn.";
    const ValueId from =
        w.q_a ? norm(linear(x, *w.q_a, name + "q_a"), w.q_a_norm, name + "q_a.norm") : x;
    const ValueId q_nope = linear(from, w.q_nope, name + "q_nope");
    const ValueId q_rope = linear(from, w.q_rope, name + "q_rope");
    const ValueId latent =
        norm(linear(x, w.kv_latent, name + "kv_a"), w.kv_norm, name + "kv_a.norm");
    const ValueId k_rope = linear(x, w.k_rope, name + "k_rope");
    const uint32_t head_dim = l.kv_rank + l.rope_dim;
    const ValueId q = value(name + "q", c.num_heads * head_dim);
    add(plan::LatentKv{.q_latent = part_linear(q_nope, w.heads.k, c.num_heads, name + "q_latent"),
                       .q_rope = q_rope,
                       .latent = latent,
                       .k_rope = k_rope,
                       .out = q,
                       .kv_layer = model_.layers[index].kv_layer,
                       .num_heads = c.num_heads,
                       .rope = *model_.rope,
                       .style = c.rope.style},
        name + "latent_kv");
    const ValueId out = value(name + "out", c.num_heads * l.kv_rank);
    add(plan::Attention{.q = q,
                        .out = out,
                        .kv_layer = model_.layers[index].kv_layer,
                        .num_heads = c.num_heads,
                        .scale = c.attention_scale,
                        .f16_inputs = fast_prefill()},
        prefix + "attn");
    return part_linear(out, w.heads.v, c.num_heads, name + "v");
  }

  // The head works on the columns that want logits, always in the decode class.
  void head(ValueId x) {
    kernel_class_ = KernelClass::decode;
    rows_ = Rows::logits;
    const ValueId selected = value("head.x", model_.config.hidden_size);
    add(plan::SelectLogits{.x = x, .out = selected}, "head.select");
    const ModelConfig& c = model_.config;
    const ValueId normed = norm(selected, model_.output_norm, "head.norm");
    ValueId logits = linear(normed, model_.lm_head, "head.logits", {}, c.logit_scale);
    if (c.logit_softcap != 0.0F) {
      const ValueId capped = value("head.capped", c.vocab_size);
      add(plan::Softcap{.x = logits, .out = capped, .cap = c.logit_softcap}, "head.softcap");
      logits = capped;
    }
    add(plan::Sample{.logits = logits}, "head.sample");
  }

  std::optional<ValueId> per_layer_;  // each layer's own embedding of the tokens
  std::optional<ValueId> rest_;       // the residual streams but the first
};

}  // namespace

plan::Plan build_plan(const Model& model, const PlanOptions& options) {
  plan::Plan result = Builder(model, options).build();
  plan::verify(result, model.resources);
  return result;
}

}  // namespace wisp::model
