// EXAONE 4: norms after attention and network and on each head of q and k; where some layers have a
// window, the others have no rope. HF: modeling_exaone4.py.
#include <algorithm>

#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_exaone4(ModelConfig& c) {
  c.pre_norms = false;
  c.post_norms = true;
  c.qk_norm = QkNorm::each_head;
}

void read_windows(ModelConfig& c) {
  const bool any =
      std::ranges::any_of(c.layers, [](const auto& layer) { return layer.window != 0; });
  if (any) drop_rope_without_window(c);
}

}  // namespace

const Arch kExaone4 = {
    .name = "exaone4",
    .hf_model_types = {"exaone4"},
    .gguf_architectures = {"exaone4"},
    .hf_names = {{Role::attention_post_norm, "model.layers.{}.post_attention_layernorm"}},
    .hf_defaults = R"({"rms_norm_eps": 1e-5})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_exaone4(c);
          read_window_pattern(fields, c, 4);
          read_windows(c);
        },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_exaone4(c);
          read_window_pattern(fields, c, 4);
          read_windows(c);
        },
};

}  // namespace wisp::model
