#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/model.h"
#include "model/rope.h"

namespace wisp::model {
namespace {

// Four million positions of the common 128 rotary dimensions.
constexpr uint64_t kMaxTableBytes = uint64_t{2} << 30;

ModelConfig read_config_hf(const formats::Checkpoint& checkpoint) {
  const auto path = checkpoint.folder() / "config.json";
  const nlohmann::json json = read_json(path);
  return with_context(path.string(), [&] {
    const JsonFields fields(json);
    const auto type = fields.get_string("model_type");
    if (!type) fail("field 'model_type' is missing");
    const Arch& arch = arch_for_hf(*type);
    ModelConfig config = read_hf_config(fields);
    config.family = arch.name;
    if (arch.from_hf != nullptr) arch.from_hf(fields, config);
    return config;
  });
}

ModelConfig read_config_gguf(const formats::Checkpoint& checkpoint) {
  return with_context(checkpoint.path().string(), [&] {
    const std::string* name = checkpoint.metadata().find_string("general.architecture");
    if (name == nullptr) fail("metadata key 'general.architecture' is missing");
    const Arch& arch = arch_for_gguf(*name);
    const GgufFields fields(checkpoint.metadata(), *name);
    ModelConfig config = read_gguf_config(fields);
    config.family = arch.name;
    if (arch.from_gguf != nullptr) arch.from_gguf(fields, config);
    // The table's rows are what counts, and older files have no vocab_size.
    const auto* table = checkpoint.find("token_embd.weight");
    if (config.vocab_size == 0 && table != nullptr && table->shape.size() == 2) {
      config.vocab_size = static_cast<uint32_t>(std::min<uint64_t>(table->shape[0], UINT32_MAX));
    }
    config.tie_word_embeddings = checkpoint.find("output.weight") == nullptr;
    return config;
  });
}

LayerWeights resolve_layer(WeightResolver& resolver, const ModelConfig& c, uint32_t layer) {
  const uint32_t q_rows = c.num_heads * c.head_dim;
  const uint32_t kv_rows = c.num_kv_heads * c.head_dim;
  using Rows = WeightResolver::Rows;
  const Rows qkv[] = {{Role::q_proj, q_rows}, {Role::k_proj, kv_rows}, {Role::v_proj, kv_rows}};
  const Rows o_proj[] = {{Role::o_proj, c.hidden_size}};
  const Rows gate_up[] = {{Role::gate_proj, c.intermediate_size},
                          {Role::up_proj, c.intermediate_size}};
  const Rows down[] = {{Role::down_proj, c.hidden_size}};
  LayerWeights w;
  w.attention_norm = resolver.vector(Role::attention_norm, layer, c.hidden_size);
  w.qkv = resolver.projection(qkv, layer, c.hidden_size);
  w.q_norm = resolver.optional_vector(Role::q_norm, layer, c.head_dim);
  w.k_norm = resolver.optional_vector(Role::k_norm, layer, c.head_dim);
  w.o_proj = resolver.projection(o_proj, layer, q_rows);
  w.ffn_norm = resolver.vector(Role::ffn_norm, layer, c.hidden_size);
  w.gate_up = resolver.projection(gate_up, layer, c.hidden_size);
  w.down_proj = resolver.projection(down, layer, c.intermediate_size);
  return w;
}

void resolve_head(WeightResolver& resolver, Model& model) {
  const ModelConfig& c = model.config;
  model.token_embedding = resolver.matrix(Role::token_embedding, 0, c.vocab_size, c.hidden_size);
  model.output_norm = resolver.vector(Role::output_norm, 0, c.hidden_size);
  if (c.tie_word_embeddings) {
    resolver.ignore(Role::lm_head);
    model.lm_head = {{{model.token_embedding, {}, c.vocab_size}}, c.vocab_size};
  } else {
    const WeightResolver::Rows head[] = {{Role::lm_head, c.vocab_size}};
    model.lm_head = resolver.projection(head, 0, c.hidden_size);
  }
}

void add_tables(WeightResolver& resolver, Model& model, uint32_t context) {
  const ModelConfig& c = model.config;
  const uint64_t bytes = uint64_t{context} * c.rope.rotary_dim * sizeof(float);
  if (bytes > kMaxTableBytes) {
    fail("a context of {} tokens needs a rope table of {} bytes, more than {}", context, bytes,
         kMaxTableBytes);
  }
  const std::vector<float> factors = resolver.values(Role::rope_factors, 0, c.rope.rotary_dim / 2);
  model.rope =
      resolver.add_table("rope", context, c.rope.rotary_dim, rope_table(c.rope, context, factors));
  if (c.query_scale_beta != 0.0F) {
    model.query_scale =
        resolver.add_table("query_scale", context, 1,
                           query_scale_table(c.query_scale_beta, c.query_scale_context, context));
  }
}

}  // namespace

ModelConfig read_config(const formats::Checkpoint& checkpoint) {
  const bool gguf = checkpoint.kind() == formats::CheckpointKind::gguf;
  ModelConfig config = gguf ? read_config_gguf(checkpoint) : read_config_hf(checkpoint);
  with_context(checkpoint.path().string(), [&] { check(config); });
  return config;
}

Model load_model(const formats::Checkpoint& checkpoint, const ModelOptions& options) {
  Model model;
  model.config = read_config(checkpoint);
  const ModelConfig& c = model.config;
  WeightResolver resolver(checkpoint);
  resolve_head(resolver, model);
  for (uint32_t i = 0; i < c.num_layers; ++i) model.layers.push_back(resolve_layer(resolver, c, i));
  add_tables(resolver, model, options.context != 0 ? options.context : c.max_position_embeddings);
  model.weights = std::move(resolver).finish();
  model.resources.weights = model.weights.list;
  model.resources.kv_layers.assign(c.num_layers, {c.num_kv_heads, c.head_dim, c.head_dim});
  model.resources.kv_dtype = options.kv_dtype;
  model.resources.vocab_size = c.vocab_size;
  return model;
}

}  // namespace wisp::model
