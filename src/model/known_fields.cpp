#include "model/known_fields.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <variant>

namespace wisp::model {
namespace {

using nlohmann::json;

// Sorted. Not listed: ids of special tokens (..._id), classifiers' summary_..., and names with a
// leading underscore, which the writing library keeps for itself.
constexpr std::string_view kHarmless[] = {
    "add_classification_head",
    "altup_coef_clip",  // in training
    "anyres_pooling_size",
    "architectures",
    "attention_dropout",
    "attention_head_dim",
    "attention_probs_dropout_prob",
    "attn_implementation",
    "attn_pdrop",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "cache_implementation",
    "chunk_size_feed_forward",
    "class_num",
    "classifier_dropout",
    "custom_pipelines",
    "dense_list",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "enable_lm_head_fp32",
    "encoder_no_repeat_ngram_size",
    "ep_size",
    "experts_implementation",
    "exponential_decay_length_penalty",
    "ff_factor",  // beside ffn_hidden_size
    "finetuned",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "initial_context_length",  // the rope's parameters have it too
    "initializer_range",
    "is_composition",
    "is_decoder",
    "is_llama_config",
    "kv_channels",
    "label2id",
    "layer_switch",  // beside sliding_window_pattern
    "length_penalty",
    "masked_softmax_fusion",
    "max_length",
    "max_position_embeddings",  // again, among the rope's parameters
    "max_sequence_length",
    "max_window_layers",  // counts with use_sliding_window only
    "min_length",
    "model_max_length",
    "model_type",
    "n_ctx",
    "n_special",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "org_vocab_size",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "output_scores",
    "pool_type",
    "predict_special_tokens",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "pruned_heads",
    "qk_head_dim",  // the sum of its parts
    "remove_invalid_values",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "seq_aux",
    "seq_length",
    "sliding_window_size",  // beside sliding_window
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_embeddings",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
};
static_assert(std::ranges::is_sorted(kHarmless));

struct OneValue {
  std::string_view key;
  std::string_view value;  // as JSON
};

// What the families do that do not ask for the field; a field may have several rows.
constexpr OneValue kSameAs[] = {
    {"add_cross_attention", "false"},
    {"alibi", "false"},
    {"apply_residual_connection_post_layernorm", "false"},
    {"cross_attention_hidden_size", "null"},
    {"full_attn_mod", "1"},
    {"interpolate_factor", "1"},
    {"is_encoder_decoder", "false"},
    {"lm_head_bias", "false"},
    {"norm_type", "\"rms\""},
    {"num_experts", "1"},
    {"order_of_interleaved_layers", "\"local_attn_first\""},
    {"position_embedding_type", "\"rope\""},
    {"position_embedding_type", "\"rope_gptj\""},
    {"qkv_bias", "false"},
    {"rope_interleaved", "false"},
    {"rotary_pct", "1.0"},
    {"rotary_scaling_factor", "1.0"},
    {"shared_expert_intermediate_size", "0"},
    {"use_bidirectional_attention", "false"},
    {"use_cla", "false"},
    {"use_embedding_sharing", "true"},
    {"use_gated_activation", "true"},
    {"use_mrope", "false"},
    {"use_parallel_block", "true"},
    {"use_parallel_embedding", "false"},  // how the table is split over devices
    {"use_parallel_embedding", "true"},
    {"use_qk_norm", "false"},
    {"use_rotary_pos_emb", "true"},
    {"use_sliding_window", "false"},
};

// Sizes of layers with a window (..._swa) are read by the families that have their own there.
constexpr std::string_view kHarmlessGguf[] = {
    "attention.group_norm_epsilon",
    "attention.key_length_swa",
    "attention.value_length_swa",
    "decoder_start_token_id",
    "deepstack_mapping",
    "expert_shared_count",
    "expert_shared_feed_forward_length",
    "kda.gate_lower_bound",
    "pooling_type",
    "rope.dimension_count_swa",
    "rope.scaling.finetuned",
    "tensor_data_layout",
};
static_assert(std::ranges::is_sorted(kHarmlessGguf));

// Most of the numbers are what llama.cpp's own writer stores for families that have none.
constexpr OneValue kSameAsGguf[] = {
    {"activation.situ_beta", "1.0"},
    {"attention.causal", "true"},
    {"attention.rope_pattern", "1"},
    {"attention.value_scale", "1.0"},
    {"attn_logit_softcapping", "0.0"},
    {"attn_logit_softcapping", "50.0"},
    {"expert_gating_func", "0"},
    {"expert_gating_func", "1"},  // softmax
    {"expert_group_count", "1"},
    {"expert_group_scale", "0.05"},
    {"expert_group_used_count", "1"},
    {"expert_weights_scale", "1.0"},
    {"final_logit_softcapping", "0.0"},
    {"final_logit_softcapping", "30.0"},
    {"interleave_moe_layer_step", "1"},
    {"rope.freq_base_swa", "10000.0"},
    {"rope.scaling.yarn_log_multiplier", "0.1"},
    {"router_logit_softcapping", "30.0"},
    {"token_shift_count", "2"},
};

// Numbers of files are often rounded to f32.
bool same(const json& a, const json& b) {
  return a == b || (a.is_number() && b.is_number() && a.get<float>() == b.get<float>());
}

// Zero, false, empty, or a list of nothing else.
bool is_none(const json& value) {
  return value == 0 || value == false || value.empty() ||
         (value.is_array() && std::ranges::all_of(value, is_none));
}

Unread look_up(std::span<const OneValue> rows, std::string_view key, const json& value) {
  Unread result = Unread::unknown;
  for (const OneValue& row : rows) {
    if (row.key != key) continue;
    if (same(json::parse(row.value), value)) return Unread::harmless;
    result = Unread::refused;
  }
  return result;
}

}  // namespace

Unread unread_hf(std::string_view key, const json& value) {
  if (value.is_null() || key.starts_with('_') || key.starts_with("summary_") ||
      key.ends_with("_id")) {
    return Unread::harmless;
  }
  if (std::ranges::binary_search(kHarmless, key)) return Unread::harmless;
  return look_up(kSameAs, key, value);
}

Unread unread_gguf(std::string_view key, const formats::MetadataValue& value) {
  if (std::ranges::binary_search(kHarmlessGguf, key)) return Unread::harmless;
  const json as_json = std::visit([](const auto& v) { return json(v); }, value);
  const Unread known = look_up(kSameAsGguf, key, as_json);
  return known == Unread::unknown && is_none(as_json) ? Unread::harmless : known;
}

}  // namespace wisp::model
