// Nemotron-H: layers of a scan, attention, a network or experts. HF: modeling_nemotron_h.py.
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

enum class Kind : uint8_t { scan, attention, network, experts };

void set_kind(LayerConfig& layer, Kind kind) {
  layer.rope = LayerRope::none;
  layer.network = kind == Kind::network || kind == Kind::experts;
  layer.experts = kind == Kind::experts;
  layer.mixer = kind == Kind::scan        ? Mixer::scan
                : kind == Kind::attention ? Mixer::attention
                                          : Mixer::none;
}

Kind kind_of(std::string_view name) {
  if (name == "M" || name == "mamba" || name == "linear_attention") return Kind::scan;
  if (name == "*" || name == "attention" || name == "full_attention") return Kind::attention;
  if (name == "-" || name == "mlp") return Kind::network;
  if (name == "E" || name == "moe") return Kind::experts;
  fail("layers of kind '{}' are not supported", name);
}

// Names, or in older files a letter for each layer.
void read_kinds(const JsonFields& fields, ModelConfig& c) {
  const std::string_view key =
      fields.first_of({"layers_block_type", "layer_types", "hybrid_override_pattern"});
  const nlohmann::json* kinds = fields.find(key);
  if (kinds == nullptr) fail("field 'layers_block_type' is missing");
  const bool letters = kinds->is_string();
  const std::string text = letters ? kinds->get<std::string>() : "";
  const size_t count = letters ? text.size() : kinds->size();
  if ((!letters && !kinds->is_array()) || count != c.num_layers) {
    fail("field '{}': expected {} kinds of layers", key, c.num_layers);
  }
  for (size_t i = 0; i < count; ++i) {
    const nlohmann::json* one = letters ? nullptr : &(*kinds)[i];
    if (one != nullptr && !one->is_string()) fail("field '{}': {} is no name", key, shown(*one));
    set_kind(c.layers[i], kind_of(letters ? text.substr(i, 1) : one->get<std::string>()));
  }
}

void read_experts(const JsonFields& fields, ModelConfig& c) {
  read_hf_experts(fields, c);
  ExpertsConfig& e = *c.experts;
  e.score = plan::RouterScore::sigmoid;
  e.correction_bias = true;
  e.group_score = plan::GroupScore::best_two;
  e.num_groups = fields.get_uint("n_group").value_or(1);
  e.top_groups = fields.get_uint("topk_group").value_or(1);
  e.scale = static_cast<float>(fields.get_number("routed_scaling_factor").value_or(1.0));
  if (fields.get_uint("n_shared_experts").value_or(1) != 1) {
    fail("field 'n_shared_experts': {} is not supported", *fields.get_uint("n_shared_experts"));
  }
  e.shared_intermediate_size = fields.require_uint("moe_shared_expert_intermediate_size");
  if (fields.has("moe_latent_size")) fail("field 'moe_latent_size' is not supported");
  fields.pass_over({"moe_shared_expert_overlap"});
}

void read_hf(const JsonFields& fields, ModelConfig& c) {
  c.gated_ffn = false;
  c.activation = activation_from_name(fields.get_string("mlp_hidden_act").value_or("relu2"));
  if (fields.has("n_routed_experts")) read_experts(fields, c);
  read_kinds(fields, c);
  ScanConfig& s = c.scan.emplace();
  s.dt_min = static_cast<float>(fields.get_number("time_step_min").value_or(0.001));
  s.num_heads = fields.require_uint("mamba_num_heads");
  const uint64_t channels = uint64_t{s.num_heads} * fields.require_uint("mamba_head_dim");
  s.inner_size = checked_cast<uint32_t>(channels, "field 'mamba_num_heads' times mamba_head_dim");
  s.num_groups = fields.require_uint("n_groups");
  s.state_size = fields.require_uint("ssm_state_size");
  s.norm_group = s.inner_size / std::max(1U, s.num_groups);
  c.conv_taps = fields.require_uint("conv_kernel");
  c.conv_bias = fields.get_bool("use_conv_bias").value_or(true);
  c.scan_bias = fields.get_bool("mamba_proj_bias").value_or(false);
  if (fields.get_string("mamba_hidden_act").value_or("silu") != "silu") {
    fail("field 'mamba_hidden_act': only silu is supported");
  }
  if (fields.get_bool("use_bias").value_or(false)) fail("field 'use_bias' is not supported");
  fields.pass_over({"chunk_size", "expand", "mamba_ssm_cache_dtype", "mtp_layers_block_type",
                    "num_logits_to_keep", "rescale_prenorm_residual", "residual_in_fp32",
                    "sliding_window", "time_step_floor", "time_step_limit", "time_step_max",
                    "use_mamba_kernels", "norm_eps", "time_step_rank"});
}

// A layer with KV heads attends, one with a size has a network. Files do not have time_step_min.
void read_gguf(const GgufFields& fields, ModelConfig& c) {
  c.gated_ffn = false;
  c.activation = plan::Activation::relu_squared;
  const bool experts = fields.get_uint("expert_count").value_or(0) != 0;
  if (experts) {
    read_gguf_experts(fields, c);
    c.experts->score = plan::RouterScore::sigmoid;
    c.experts->correction_bias = true;
    c.experts->group_score = plan::GroupScore::best_two;
    c.experts->num_groups = fields.get_uint("expert_group_count").value_or(1);
    c.experts->top_groups = fields.get_uint("expert_group_used_count").value_or(1);
    c.experts->shared_intermediate_size = fields.require_uint("expert_shared_feed_forward_length");
  }
  for (LayerConfig& layer : c.layers) {
    const Kind network = experts ? Kind::experts : Kind::network;
    set_kind(layer, layer.num_kv_heads != 0        ? Kind::attention
                    : layer.intermediate_size != 0 ? network
                                                   : Kind::scan);
  }
  read_ssm(fields, c);
  c.scan->dt_min = 0.001F;
}

std::vector<RoleName> hf_names() {
  std::vector<RoleName> names = backbone_names();
  for (const RoleName& own : std::initializer_list<RoleName>{
           {Role::q_proj, "backbone.layers.{}.mixer.q_proj"},
           {Role::k_proj, "backbone.layers.{}.mixer.k_proj"},
           {Role::v_proj, "backbone.layers.{}.mixer.v_proj"},
           {Role::o_proj, "backbone.layers.{}.mixer.o_proj"},
           {Role::up_proj, "backbone.layers.{}.mixer.up_proj"},
           {Role::down_proj, "backbone.layers.{}.mixer.down_proj"},
           {Role::router, "backbone.layers.{}.mixer.gate"},
           {Role::router_correction, "backbone.layers.{}.mixer.gate.e_score_correction_bias"},
           {Role::expert_up, "backbone.layers.{}.mixer.experts.{}.up_proj"},
           {Role::expert_down, "backbone.layers.{}.mixer.experts.{}.down_proj"},
           {Role::shared_up, "backbone.layers.{}.mixer.shared_experts.up_proj"},
           {Role::shared_down, "backbone.layers.{}.mixer.shared_experts.down_proj"}}) {
    names.push_back(own);
  }
  return names;
}

}  // namespace

const Arch kNemotronH = {
    .name = "nemotron_h",
    .hf_model_types = {"nemotron_h"},
    .gguf_architectures = {"nemotron_h", "nemotron_h_moe"},
    .hf_names = hf_names(),
    .gguf_names = ssm_names(),
    .windows = false,
    .hf_defaults = R"({"layer_norm_epsilon": 1e-5, "conv_kernel": 4, "norm_topk_prob": true})",
    .from_hf = read_hf,
    .from_gguf = read_gguf,
};

}  // namespace wisp::model
