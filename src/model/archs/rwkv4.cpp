// RWKV-4: every layer mixes each column with the one before it, keeps weighted sums of all values
// before, and gates both parts by a receptance. HF: modeling_rwkv.py.
#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

void read_hf(const JsonFields& fields, ModelConfig& c) {
  c.norm = plan::NormKind::layer;
  c.embedding_norm = true;
  c.gated_ffn = false;
  c.activation = plan::Activation::relu_squared;
  c.ffn_bias = false;
  c.attention_size = fields.get_uint("attention_hidden_size").value_or(c.hidden_size);
  c.max_position_embeddings = 1 << 20;  // nothing limits them
  for (LayerConfig& layer : c.layers) {
    set_mixer(layer, Mixer::wkv);
  }
  default_ffn_size(c, 4 * c.hidden_size);
  // Its last norm has 1e-5 always.
  if (c.norm_eps != 1e-5F) fail("field 'layer_norm_epsilon': {} is not supported", c.norm_eps);
  // Halving the stream every few layers is for half precision; the last norm undoes it.
  fields.pass_over({"context_length", "rescale_every"});
}

std::vector<RoleName> hf_names() {
  return {{Role::token_embedding, "rwkv.embeddings"},
          {Role::output_norm, "rwkv.ln_out"},
          {Role::lm_head, "head"},
          {Role::attention_norm, "rwkv.blocks.{}.ln1"},
          {Role::ffn_norm, "rwkv.blocks.{}.ln2"},
          {Role::up_proj, "rwkv.blocks.{}.feed_forward.key"},
          {Role::down_proj, "rwkv.blocks.{}.feed_forward.value"}};
}

}  // namespace

const Arch kRwkv4 = {
    .name = "rwkv4",
    .hf_model_types = {"rwkv"},
    .gguf_architectures = {},
    .hf_names = hf_names(),
    .attention = false,
    .windows = false,
    .hf_defaults = R"({"layer_norm_epsilon": 1e-5})",
    .from_hf = read_hf,
};

}  // namespace wisp::model
