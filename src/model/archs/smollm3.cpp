// SmolLM3: llama in which some layers have no rope. HF: modeling_smollm3.py.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

void set_rope(LayerConfig& layer, bool rope) {
  layer.rope = rope ? LayerRope::global : LayerRope::none;
}

// Every fourth layer, as published checkpoints and GGUF files have it.
void default_layers(ModelConfig& c, uint32_t interval) {
  for (uint32_t i = 0; i < c.num_layers; ++i) set_rope(c.layers[i], (i + 1) % interval != 0);
}

}  // namespace

const Arch kSmolLM3 = {
    .name = "smollm3",
    .hf_model_types = {"smollm3"},
    .gguf_architectures = {"smollm3"},
    .windows = false,
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          const uint32_t interval = fields.get_uint("no_rope_layer_interval").value_or(4);
          if (interval == 0) fail("field 'no_rope_layer_interval' is 0");
          default_layers(c, interval);
          const auto* list = fields.find("no_rope_layers");  // 1: the layer has rope
          if (list == nullptr) return;
          if (!list->is_array() || list->size() != c.num_layers) {
            fail("field 'no_rope_layers': expected a list of {} numbers", c.num_layers);
          }
          for (uint32_t i = 0; i < c.num_layers; ++i) set_rope(c.layers[i], (*list)[i] != 0);
        },
    .from_gguf =
        [](const GgufFields&, ModelConfig& c) {
          c.rope.style = plan::RopeStyle::interleaved;
          default_layers(c, 4);
        },
};

}  // namespace wisp::model
