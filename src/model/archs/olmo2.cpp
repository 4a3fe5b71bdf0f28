// OLMo 2 and 3: norms after attention and network and over all heads of q and of k; three layers of
// four with a window in OLMo 3. HF: modeling_olmo2.py, modeling_olmo3.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_olmo2(ModelConfig& c) {
  c.pre_norms = false;
  c.post_norms = true;
  c.qk_norm = QkNorm::all_heads;
}

const std::vector<RoleName> kNames = {
    {Role::attention_post_norm, "model.layers.{}.post_attention_layernorm"}};

// Only layers without a window stretch their rope.
void read_windows(ModelConfig& c) {
  if (!c.local_rope)
    c.local_rope = RopeConfig{.theta = c.rope.theta, .rotary_dim = c.rope.rotary_dim};
  use_local_rope(c);
}

}  // namespace

const Arch kOlmo2 = {
    .name = "olmo2",
    .hf_model_types = {"olmo2"},
    .gguf_architectures = {"olmo2"},
    .hf_names = kNames,
    .windows = false,
    .hf_defaults = R"({"rms_norm_eps": 1e-5})",
    .from_hf = [](const JsonFields&, ModelConfig& c) { read_olmo2(c); },
    .from_gguf =
        [](const GgufFields& fields, ModelConfig& c) {
          read_olmo2(c);
          read_window_pattern(fields, c, 4);
          if (const auto theta = fields.get_number("rope.freq_base_swa")) {
            c.local_rope = RopeConfig{.theta = *theta, .rotary_dim = c.rope.rotary_dim};
          }
          read_windows(c);
        },
};

const Arch kOlmo3 = {
    .name = "olmo3",
    .hf_model_types = {"olmo3"},
    .gguf_architectures = {},
    .hf_names = kNames,
    .hf_defaults = R"({"rms_norm_eps": 1e-5, "sliding_window": 4096, "rope_theta": 500000.0})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_olmo2(c);
          read_window_pattern(fields, c, 4);
          read_windows(c);
        },
};

}  // namespace wisp::model
