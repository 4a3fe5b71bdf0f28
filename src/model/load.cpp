#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/mixers.h"
#include "model/model.h"
#include "model/rope.h"

namespace wisp::model {
namespace {

// Four million positions of the common 128 rotary dimensions.
constexpr uint64_t kMaxTableBytes = uint64_t{2} << 30;

// Whether null is a value of the field, and no other word for "absent".
bool null_means_none(std::string_view key) {
  return key == "sliding_window" || key.ends_with("_softcapping");
}

// What the file says, over the family's defaults.
nlohmann::json with_defaults(const Arch& arch, const nlohmann::json& own) {
  nlohmann::json whole = nlohmann::json::parse(arch.hf_defaults);
  for (const auto& [key, value] : own.items()) {
    if (!value.is_null() || null_means_none(key) || !whole.contains(key)) whole[key] = value;
  }
  return whole;
}

ModelConfig read_config_hf(const formats::Checkpoint& checkpoint) {
  const auto path = checkpoint.folder() / "config.json";
  const nlohmann::json json = read_json(path);
  return with_context(path.string(), [&] {
    const JsonFields fields(json);
    const auto type = fields.get_string("model_type");
    if (!type) fail("field 'model_type' is missing");
    const Arch& arch = arch_for_hf(*type);
    const nlohmann::json whole = with_defaults(arch, json);
    const JsonFields all(whole);
    ModelConfig config = read_hf_config(all, arch.attention);
    config.family = arch.name;
    if (!arch.windows) {
      for (LayerConfig& layer : config.layers) layer.window = 0;
    }
    if (arch.single_layers) {
      read_hf_single_layers(all, config);
    } else if (all.has("per_layer_config")) {
      fail("field 'per_layer_config' is not supported");
    }
    if (arch.from_hf != nullptr) arch.from_hf(all, config);
    all.refuse_unread(arch.name);
    return config;
  });
}

// GGUF has the factors of longrope as tensors.
void read_longrope(const formats::Checkpoint& checkpoint, RopeConfig& rope) {
  const auto factors = [&](std::string_view name) -> std::vector<double> {
    const formats::TensorView* tensor = checkpoint.find(name);
    if (tensor == nullptr) return {};
    const std::vector<float> values = formats::tensor_to_f32(*tensor);
    return {values.begin(), values.end()};
  };
  rope.short_factors = factors("rope_factors_short.weight");
  rope.long_factors = factors("rope_factors_long.weight");
  if (!rope.long_factors.empty()) rope.scaling = RopeScaling::longrope;
  const bool scaled = rope.scaling == RopeScaling::longrope || rope.scaling == RopeScaling::yarn;
  if (rope.attention_factor && !scaled) {
    fail("rope.scaling.attn_factor: {} is not supported", *rope.attention_factor);
  }
}

ModelConfig read_config_gguf(const formats::Checkpoint& checkpoint) {
  return with_context(checkpoint.path().string(), [&] {
    const std::string* name = checkpoint.metadata().find_string("general.architecture");
    if (name == nullptr) fail("metadata key 'general.architecture' is missing");
    const Arch& arch = arch_for_gguf(*name);
    const GgufFields fields(checkpoint.metadata(), *name);
    ModelConfig config = read_gguf_config(fields, arch.attention);
    config.family = arch.name;
    if (arch.from_gguf != nullptr) arch.from_gguf(fields, config);
    fields.refuse_unread(arch.name);
    // The table's rows are what counts, and older files have no vocab_size.
    const auto* table = checkpoint.find("token_embd.weight");
    if (config.vocab_size == 0 && table != nullptr && table->shape.size() == 2) {
      config.vocab_size = static_cast<uint32_t>(std::min<uint64_t>(table->shape[0], UINT32_MAX));
    }
    config.tie_word_embeddings = checkpoint.find("output.weight") == nullptr;
    read_longrope(checkpoint, config.rope);
    return config;
  });
}

using Rows = WeightResolver::Rows;
using RowRange = WeightResolver::RowRange;

// [q heads | k heads | v heads] out of the rows of each KV head: its q heads, k, v.
std::vector<RowRange> grouped_rows(uint32_t num_heads, const LayerConfig& layer) {
  const uint32_t heads = num_heads / layer.num_kv_heads;
  const uint32_t group = (heads + 2) * layer.head_dim;
  std::vector<RowRange> order;
  for (uint32_t g = 0; g < layer.num_kv_heads; ++g) {
    order.push_back({g * group, heads * layer.head_dim});
  }
  for (const uint32_t part : {heads, heads + 1}) {
    for (uint32_t g = 0; g < layer.num_kv_heads; ++g) {
      order.push_back({g * group + part * layer.head_dim, layer.head_dim});
    }
  }
  return order;
}

// Resolves the weights of one layer.
class LayerResolver {
 public:
  LayerResolver(WeightResolver& resolver, const ModelConfig& config, uint32_t layer)
      : resolver_(resolver), c_(config), l_(config.layers[layer]), layer_(layer) {}

  LayerWeights resolve() {
    LayerWeights w;
    if (l_.mixer != Mixer::none) {
      w.attention_norm = norm(c_.pre_norms, Role::attention_norm, c_.hidden_size);
      if (l_.mixer == Mixer::attention) resolve_attention(w);
      resolve_mixer(resolver_, c_, layer_, w);
      w.attention_post_norm = norm(c_.post_norms, Role::attention_post_norm, c_.hidden_size);
    }
    if (l_.network) resolve_network(w);
    if (c_.per_layer_dim != 0) w.per_layer = per_layer();
    if (c_.streams) w.streams = streams(c_.streams->count);
    if (c_.laurel_rank != 0) w.laurel = laurel();
    if (c_.layer_scales) w.scale = resolver_.bare_number(Role::layer_scale, layer_);
    return w;
  }

 private:
  void resolve_attention(LayerWeights& w) {
    const Rows o_proj[] = {{Role::o_proj, c_.hidden_size}};
    const uint32_t out_cols = c_.num_heads * (c_.latent ? c_.latent->value_dim : l_.head_dim);
    if (c_.latent) {
      w.latent = latent(*c_.latent);
    } else {
      w.qkv = qkv();
      if (c_.output_gate) w.output_gate = half_of_q(1);
    }
    w.q_norm = head_norm(Role::q_norm, c_.num_heads);
    if (!l_.kv_of) w.k_norm = head_norm(Role::k_norm, l_.num_kv_heads);
    if (c_.attention_sinks) {
      w.sinks = resolver_.bare_vector(Role::attention_sinks, layer_, c_.num_heads);
    }
    w.attention_sub_norm = norm(c_.sub_norms, Role::attention_sub_norm, out_cols);
    w.o_proj = resolver_.projection(o_proj, layer_, out_cols, c_.o_bias);
  }

  void resolve_network(LayerWeights& w) {
    const Rows down[] = {{Role::down_proj, c_.hidden_size}};
    const bool own_norm = c_.pre_norms && c_.residual != Residual::parallel_shared;
    w.ffn_norm = norm(own_norm, Role::ffn_norm, c_.hidden_size);
    if (l_.experts) w.experts = experts();
    if (!l_.experts || c_.experts->beside_network) {
      w.up = up();
      w.ffn_sub_norm = norm(c_.sub_norms, Role::ffn_sub_norm, l_.intermediate_size);
      w.down_proj = resolver_.projection(down, layer_, l_.intermediate_size, c_.ffn_bias);
    }
    w.ffn_post_norm = norm(c_.post_norms, Role::ffn_post_norm, c_.hidden_size);
  }

  std::optional<NormWeights> norm(bool there, Role role, uint32_t size) {
    if (!there) return {};
    if (!c_.norm_weights) return NormWeights{};
    return resolver_.norm(role, layer_, size, c_.norm);
  }

  Projection qkv() {
    const uint32_t q_rows = c_.num_heads * l_.head_dim;
    const uint32_t kv_rows = l_.num_kv_heads * l_.head_dim;
    // Some files of a family have one tensor, some three.
    const bool one =
        c_.qkv_layout != QkvLayout::separate &&
        (resolver_.has(Role::qkv_proj, layer_) || !resolver_.has(Role::q_proj, layer_));
    switch (one ? c_.qkv_layout : QkvLayout::separate) {
      case QkvLayout::separate: {
        if (c_.output_gate) return gated_qkv();
        const bool keys_twice = l_.keys_as_values && !resolver_.has(Role::v_proj, layer_);
        const Rows rows[] = {{Role::q_proj, q_rows},
                             {Role::k_proj, kv_rows},
                             {keys_twice ? Role::k_proj : Role::v_proj, kv_rows}};
        if (!l_.kv_of) return resolver_.projection(rows, layer_, c_.hidden_size, c_.qkv_bias);
        // Some files have the others all the same.
        for (const Role role : {Role::k_proj, Role::v_proj, Role::k_norm}) {
          resolver_.ignore(role, layer_);
        }
        return resolver_.projection(std::span(rows).first(1), layer_, c_.hidden_size, c_.qkv_bias);
      }
      case QkvLayout::stacked: {
        const Rows rows[] = {{Role::qkv_proj, q_rows + 2 * kv_rows}};
        return resolver_.projection(rows, layer_, c_.hidden_size, c_.qkv_bias);
      }
      case QkvLayout::grouped:
        return resolver_.select(Role::qkv_proj, layer_, q_rows + 2 * kv_rows,
                                grouped_rows(c_.num_heads, l_), c_.hidden_size, c_.qkv_bias);
    }
    return {};
  }

  // Of q_proj's rows those of queries, or of gates: a head's gate is behind its query.
  Projection half_of_q(uint32_t half) {
    std::vector<RowRange> order;
    for (uint32_t h = 0; h < c_.num_heads; ++h) {
      order.push_back({(2 * h + half) * l_.head_dim, l_.head_dim});
    }
    return resolver_.select(Role::q_proj, layer_, 2 * c_.num_heads * l_.head_dim, order,
                            c_.hidden_size, c_.qkv_bias);
  }

  Projection gated_qkv() {
    const uint32_t kv_rows = l_.num_kv_heads * l_.head_dim;
    const Rows rows[] = {{Role::k_proj, kv_rows}, {Role::v_proj, kv_rows}};
    Projection result = half_of_q(0);
    append(result, resolver_.projection(rows, layer_, c_.hidden_size, c_.qkv_bias));
    return result;
  }

  LatentWeights latent(const LatentConfig& l) {
    // Of each head the part that does not rotate, then that which does.
    std::vector<RowRange> nope;
    std::vector<RowRange> rotated;
    for (uint32_t h = 0; h < c_.num_heads; ++h) {
      nope.push_back({h * l_.head_dim, l.nope_dim});
      rotated.push_back({h * l_.head_dim + l.nope_dim, l.rope_dim});
    }
    const Role q_role = l.q_rank != 0 ? Role::q_b_proj : Role::q_proj;
    const uint32_t q_cols = l.q_rank != 0 ? l.q_rank : c_.hidden_size;
    const uint32_t q_rows = c_.num_heads * l_.head_dim;
    const RowRange kv[] = {{0, l.kv_rank}};
    const RowRange k[] = {{l.kv_rank, l.rope_dim}};
    LatentWeights w;
    if (l.q_rank != 0) {
      const Rows q_a[] = {{Role::q_a_proj, l.q_rank}};
      w.q_a = resolver_.projection(q_a, layer_, c_.hidden_size, c_.qkv_bias);
      w.q_a_norm = resolver_.norm(Role::q_a_norm, layer_, l.q_rank, c_.norm);
    }
    w.q_nope = resolver_.select(q_role, layer_, q_rows, nope, q_cols);
    w.q_rope = resolver_.select(q_role, layer_, q_rows, rotated, q_cols);
    const uint32_t kv_rows = l.kv_rank + l.rope_dim;
    w.kv_latent =
        resolver_.select(Role::kv_a_proj, layer_, kv_rows, kv, c_.hidden_size, c_.qkv_bias);
    w.k_rope = resolver_.select(Role::kv_a_proj, layer_, kv_rows, k, c_.hidden_size, c_.qkv_bias);
    w.kv_norm = resolver_.norm(Role::kv_a_norm, layer_, l.kv_rank, c_.norm);
    w.heads = resolver_.latent_heads(layer_, c_.num_heads, l);
    return w;
  }

  std::optional<plan::WeightId> head_norm(Role role, uint32_t heads) {
    switch (c_.qk_norm) {
      case QkNorm::none:
        return {};
      case QkNorm::each_head:
        return resolver_.vector(role, layer_, l_.head_dim);
      case QkNorm::own_heads:
        return resolver_.head_norms(role, layer_, heads, l_.head_dim);
      case QkNorm::all_heads:
        return resolver_.vector(role, layer_, heads * l_.head_dim);
    }
    return {};
  }

  Projection up() {
    if (c_.fused_gate_up) {
      const Rows rows[] = {{Role::gate_up_proj, 2 * l_.intermediate_size}};
      return resolver_.projection(rows, layer_, c_.hidden_size, c_.ffn_bias);
    }
    const Rows rows[] = {{Role::gate_proj, l_.intermediate_size},
                         {Role::up_proj, l_.intermediate_size}};
    return resolver_.projection(std::span(rows).subspan(c_.gated_ffn ? 0 : 1), layer_,
                                c_.hidden_size, c_.ffn_bias);
  }

  ExpertWeights experts() {
    ensure(c_.experts.has_value(), "layers of experts have their config");
    const ExpertsConfig& e = *c_.experts;
    const Rows router[] = {{Role::router, e.num_experts}};
    const Rows gate_up[] = {{Role::expert_gate, e.intermediate_size},
                            {Role::expert_up, e.intermediate_size}};
    const Rows fused[] = {{Role::expert_gate_up, 2 * e.intermediate_size}};
    const Rows down[] = {{Role::expert_down, c_.hidden_size}};
    std::span<const Rows> up = gate_up;
    if (!c_.gated_ffn) up = up.subspan(1);
    // Some files of a family have one tensor, some two.
    const bool one =
        resolver_.has(Role::expert_gate_up, layer_) || !resolver_.has(Role::expert_gate, layer_);
    if (e.fused_gate_up && one) up = fused;
    ExpertWeights w;
    if (e.beside_network) {
      w.router_norm =
          NormWeights{.weight = resolver_.bare_vector(Role::router_norm, layer_, c_.hidden_size)};
      w.norm = norm(true, Role::experts_norm, c_.hidden_size);
      w.post_norm = norm(true, Role::experts_post_norm, c_.hidden_size);
      w.network_post_norm = norm(true, Role::network_post_norm, c_.hidden_size);
    }
    if (e.expert_scales) {
      w.scales = resolver_.bare_vector(Role::expert_scales, layer_, e.num_experts);
    }
    w.router = resolver_.projection(router, layer_, c_.hidden_size);
    if (e.correction_bias) {
      w.correction = resolver_.bare_vector(Role::router_correction, layer_, e.num_experts);
    }
    w.up = resolver_.experts(up, layer_, e.num_experts, c_.hidden_size, e.layout);
    w.down = resolver_.experts(down, layer_, e.num_experts, e.intermediate_size, e.layout);
    if (e.shared_intermediate_size != 0) {
      const Rows shared_up[] = {{Role::shared_gate, e.shared_intermediate_size},
                                {Role::shared_up, e.shared_intermediate_size}};
      const Rows shared_down[] = {{Role::shared_down, c_.hidden_size}};
      const Rows shared_gate[] = {{Role::shared_expert_gate, 1}};
      w.shared_up = resolver_.projection(std::span(shared_up).subspan(c_.gated_ffn ? 0 : 1), layer_,
                                         c_.hidden_size, c_.ffn_bias);
      w.shared_down =
          resolver_.projection(shared_down, layer_, e.shared_intermediate_size, c_.ffn_bias);
      if (e.shared_gate) w.shared_gate = resolver_.projection(shared_gate, layer_, c_.hidden_size);
    }
    return w;
  }

  PerLayerWeights per_layer() {
    const Rows gate[] = {{Role::per_layer_gate, c_.per_layer_dim}};
    const Rows proj[] = {{Role::per_layer_proj, c_.hidden_size}};
    return {.gate = resolver_.projection(gate, layer_, c_.hidden_size),
            .proj = resolver_.projection(proj, layer_, c_.per_layer_dim),
            .norm = resolver_.norm(Role::per_layer_norm, layer_, c_.hidden_size, c_.norm)};
  }

  StreamWeights streams(uint32_t count) {
    const Rows router[] = {{Role::stream_router, count}};
    const Rows predict[] = {{Role::stream_predict, count * count}};
    const Rows correct[] = {{Role::stream_correct, count}};
    return {
        .router_norm = resolver_.norm(Role::stream_router_norm, layer_, c_.hidden_size, c_.norm),
        .router = resolver_.projection(router, layer_, c_.hidden_size),
        .predict = resolver_.projection(predict, layer_, count),
        .correct = resolver_.projection(correct, layer_, count),
        .scale = resolver_.bare_vector(Role::stream_scale, layer_, c_.hidden_size)};
  }

  LaurelWeights laurel() {
    const Rows left[] = {{Role::laurel_left, c_.laurel_rank}};
    const Rows right[] = {{Role::laurel_right, c_.hidden_size}};
    return {.left = resolver_.projection(left, layer_, c_.hidden_size),
            .right = resolver_.projection(right, layer_, c_.laurel_rank),
            .norm = resolver_.norm(Role::laurel_norm, layer_, c_.hidden_size, c_.norm)};
  }

  WeightResolver& resolver_;
  const ModelConfig& c_;
  const LayerConfig& l_;
  uint32_t layer_;
};

void resolve_head(WeightResolver& resolver, Model& model) {
  const ModelConfig& c = model.config;
  model.token_embedding = resolver.matrix(Role::token_embedding, 0, c.vocab_size, c.hidden_size);
  if (c.learned_positions) {
    model.position_embedding =
        resolver.table(Role::position_embedding, c.max_position_embeddings, c.hidden_size);
  }
  if (c.per_layer_dim != 0) {
    const uint32_t width = c.num_layers * c.per_layer_dim;
    const Rows proj[] = {{Role::per_layer_model_proj, width}};
    model.per_layer = {
        .table = resolver.padded_matrix(Role::per_layer_embedding, c.per_layer_vocab, c.vocab_size,
                                        width),
        .proj = resolver.projection(proj, 0, c.hidden_size),
        .norm = resolver.norm(Role::per_layer_model_norm, 0, c.per_layer_dim, c.norm)};
  }
  if (c.streams) {
    const auto matrices = [&](Role role) {
      const Rows rows[] = {{role, c.hidden_size}};
      return resolver.experts(rows, 0, c.streams->count - 1, c.hidden_size, c.streams->layout);
    };
    model.streams = {.proj = matrices(Role::stream_proj),
                     .unembed = matrices(Role::stream_unembed_proj)};
  }
  if (c.embedding_norm) {
    model.embedding_norm = resolver.norm(Role::embedding_norm, 0, c.hidden_size, c.norm);
  }
  if (c.norm_weights)
    model.output_norm = resolver.norm(Role::output_norm, 0, c.hidden_size, c.norm);
  // As in transformers, a stored head that differs goes before what the config says.
  const bool tied = c.tie_word_embeddings && (!resolver.has(Role::lm_head, 0) ||
                                              resolver.same(Role::lm_head, Role::token_embedding));
  if (tied) {
    resolver.ignore(Role::lm_head);
    model.lm_head = {{{model.token_embedding, {}, c.vocab_size}}, c.vocab_size};
  } else {
    model.lm_head = resolver.head(c.vocab_size, c.hidden_size);
  }
}

// `factors` divide the frequencies.
plan::WeightId add_rope(WeightResolver& resolver, std::string name, RopeConfig rope,
                        uint32_t context, uint32_t longest, std::span<const float> factors) {
  if (longest <= rope.original_context) rope.long_factors = rope.short_factors;
  const uint64_t bytes = uint64_t{context} * rope.rotary_dim * sizeof(float);
  if (bytes > kMaxTableBytes) {
    fail("a context of {} tokens needs a rope table of {} bytes, more than {}", context, bytes,
         kMaxTableBytes);
  }
  return resolver.add_table(std::move(name), context, rope.rotary_dim,
                            rope_table(rope, context, factors));
}

void add_tables(WeightResolver& resolver, Model& model, uint32_t context, uint32_t longest) {
  const ModelConfig& c = model.config;
  const auto used = [&](LayerRope rope) {
    return std::ranges::find(c.layers, rope, &LayerConfig::rope) != c.layers.end();
  };
  resolver.ignore(Role::rope_factors_short);  // read with the config
  resolver.ignore(Role::rope_factors_long);
  if (used(LayerRope::global)) {
    const std::vector<float> factors =
        resolver.values(Role::rope_factors, 0, c.rope.rotary_dim / 2, c.rope.stored_factors);
    model.rope = add_rope(resolver, "rope", c.rope, context, longest, factors);
  }
  if (used(LayerRope::local)) {
    ensure(c.local_rope.has_value(), "layers with a local rope have its config");
    model.local_rope = add_rope(resolver, "local_rope", *c.local_rope, context, longest, {});
  }
  if (c.query_scale_beta != 0.0F) {
    model.query_scale =
        resolver.add_table("query_scale", context, 1,
                           query_scale_table(c.query_scale_beta, c.query_scale_context, context));
  }
}

TensorNames tensor_names(const formats::Checkpoint& checkpoint, const Arch& arch) {
  const bool gguf = checkpoint.kind() == formats::CheckpointKind::gguf;
  TensorNames names(checkpoint, gguf ? arch.gguf_names : arch.hf_names);
  if (gguf || names.has(Role::token_embedding, 0)) return names;
  TensorNames bare = names;
  bare.drop_prefix();
  return bare.has(Role::token_embedding, 0) ? bare : names;
}

}  // namespace

std::vector<plan::KvLayer> kv_layers(const ModelConfig& c) {
  std::vector<plan::KvLayer> result;
  for (const LayerConfig& layer : c.layers) {
    if (layer.kv_of || layer.mixer != Mixer::attention) continue;
    if (c.latent) {
      const LatentConfig& l = *c.latent;
      result.push_back({1, l.kv_rank + l.rope_dim, l.kv_rank, true});
    } else {
      result.push_back({layer.num_kv_heads, layer.head_dim, layer.head_dim});
    }
  }
  return result;
}

std::vector<plan::StateLayer> state_layers(const ModelConfig& c) {
  std::vector<plan::StateLayer> result;
  for (const LayerConfig& layer : c.layers) add_states(c, layer, result);
  return result;
}

ModelConfig read_config(const formats::Checkpoint& checkpoint) {
  const bool gguf = checkpoint.kind() == formats::CheckpointKind::gguf;
  ModelConfig config = gguf ? read_config_gguf(checkpoint) : read_config_hf(checkpoint);
  with_context(checkpoint.path().string(), [&] { check(config); });
  return config;
}

namespace {

Model resolve(const formats::Checkpoint& checkpoint, const ModelOptions& options, bool check_only) {
  Model model;
  model.config = read_config(checkpoint);
  const ModelConfig& c = model.config;
  WeightResolver resolver(checkpoint, tensor_names(checkpoint, arch_named(c.family)), c.transposed,
                          check_only);
  resolve_head(resolver, model);
  uint32_t num_kv_layers = 0;
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    LayerWeights layer = LayerResolver(resolver, c, i).resolve();
    layer.state = plan::StateId{static_cast<uint32_t>(model.resources.states.size())};
    add_states(c, c.layers[i], model.resources.states);
    if (c.layers[i].kv_of) {
      layer.kv_layer = model.layers[*c.layers[i].kv_of].kv_layer;
    } else if (c.layers[i].mixer == Mixer::attention) {
      layer.kv_layer = plan::KvLayerId{num_kv_layers++};
    }
    model.layers.push_back(std::move(layer));
  }
  const auto or_all = [&](uint32_t given) {
    return given != 0 ? given : c.max_position_embeddings;
  };
  add_tables(resolver, model, or_all(options.context), or_all(options.stated_context));
  for (uint32_t i = 0; i < c.num_extra_layers; ++i) resolver.ignore_layer(c.num_layers + i);
  model.weights = std::move(resolver).finish();
  model.resources.weights = model.weights.list;
  model.resources.kv_layers = kv_layers(c);
  model.resources.kv_dtype = options.kv_dtype;
  model.resources.vocab_size = c.vocab_size;
  return model;
}

}  // namespace

Model load_model(const formats::Checkpoint& checkpoint, const ModelOptions& options) {
  return resolve(checkpoint, options, false);
}

void check_tensors(const formats::Checkpoint& checkpoint) {
  resolve(checkpoint, {.context = 1}, true);
}

}  // namespace wisp::model
