// Hunyuan, dense: llama with a norm on each head of q and k after the rotation. HF:
// modeling_hunyuan_v1_dense.py.
#include "model/archs/families.h"

namespace wisp::model {

namespace {

void read_hunyuan(ModelConfig& c) {
  c.qk_norm = QkNorm::each_head;
  c.qk_norm_after_rope = true;
}

}  // namespace

const Arch kHunyuanDense = {
    .name = "hunyuan_dense",
    .hf_model_types = {"hunyuan_v1_dense"},
    .gguf_architectures = {"hunyuan-dense"},
    .hf_names = {{Role::q_norm, "model.layers.{}.self_attn.query_layernorm"},
                 {Role::k_norm, "model.layers.{}.self_attn.key_layernorm"}},
    .windows = false,
    .hf_defaults = R"({"rms_norm_eps": 1e-5})",
    .from_hf =
        [](const JsonFields& fields, ModelConfig& c) {
          read_hunyuan(c);
          // All have these norms; the others belong to relatives with experts.
          fields.pass_over({"use_qk_norm", "cla_share_factor", "moe_topk", "moe_intermediate_size",
                            "moe_layer_num_skipped", "num_shared_expert"});
        },
    .from_gguf = [](const GgufFields&, ModelConfig& c) { read_hunyuan(c); },
};

}  // namespace wisp::model
