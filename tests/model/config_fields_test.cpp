// Which fields of a config.json may be left unread.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config_file.h"
#include "formats/quoted.h"
#include "model/config.h"

namespace wisp::model {
namespace {

using nlohmann::json;

TEST(ConfigHf, UnknownFieldsAreRefused) {
  struct Case {
    const char* field;
    json value;
    const char* message;
  };
  const Case cases[] = {
      {"tilt", 2.0,
       "config.json: field 'tilt': 2.0 is not known for the family 'llama', whose results it may "
       "change"},
      {"tilt", false, "field 'tilt': false is not known"},
      {"text_config", json::object(), "field 'text_config': {} is not known"},
      {"quantization", {{"bits", 4}}, "field 'quantization': {\"bits\":4} is not known"},
      {"use_mrope", true, "field 'use_mrope': true is not supported"},
      {"position_embedding_type", "alibi", "'position_embedding_type': \"alibi\" is not supp"},
      {"rope_scaling",
       {{"type", "linear"}, {"factor", 2.0}, {"short_mscale", 1.5}},
       "field 'rope_scaling.short_mscale': 1.5 is not known"},
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "default"}, {"tilt", 1}}}},
       "field 'rope_parameters.full_attention.tilt': 1 is not known"},
  };
  for (const Case& c : cases) {
    json config = llama_config();
    config[c.field] = c.value;
    EXPECT_NE(error_of(config).find(c.message), std::string::npos) << error_of(config);
  }
}

TEST(ConfigHf, FieldsThatChangeNothingAreLeftAlone) {
  json config = llama_config();
  config.update(json::parse(R"({
    "tilt": null, "use_mrope": false, "position_embedding_type": "rope", "_name_or_path": "x/y",
    "initializer_range": 0.02, "image_token_id": 5, "summary_type": "cls_index", "top_k": 50,
    "transformers.js_config": {"dtype": "q4"}, "id2label": {"0": "LABEL_0"}, "rope_scaling":
    {"type": "default", "factor": 2.0, "beta_fast": 32, "finetuned": true}})"));
  EXPECT_EQ(error_of(config), "");
  // Also where another field leaves them without a meaning.
  config["model_type"] = "gemma4_text";
  config.erase("rope_scaling");
  config.update(json::parse(R"({
    "enable_moe_block": false, "num_experts": 8, "top_k_experts": 2, "global_head_dim": 32,
    "hidden_size_per_layer_input": 0, "sliding_window_pattern": 2,
    "layer_types": ["sliding_attention", "full_attention"]})"));
  EXPECT_EQ(error_of(config), "");
}

// What files on the hub have beside the fields that the families read.
TEST(ConfigHf, PublishedFieldsAreKnown) {
  struct Case {
    const char* model_type;
    const char* fields;
  };
  const Case cases[] = {
      {"llama", R"({"pretraining_tp": 1, "max_sequence_length": 2048, "is_llama_config": true,
                    "rope_interleaved": false, "unsloth_fixed": true, "pad_token_id": 0,
                    "mlp_bias": false, "attention_bias": false, "use_cache": true})"},
      {"qwen2", R"({"use_mrope": false, "max_window_layers": 21, "sliding_window": 131072,
                    "use_sliding_window": false, "attention_dropout": 0.0})"},
      {"gemma2", R"({"cache_implementation": "hybrid", "hidden_activation": "gelu_pytorch_tanh",
                     "sliding_window_size": 4096, "attn_logit_softcapping": 50.0})"},
      {"gemma3_text", R"({"_sliding_window_pattern": 6, "use_bidirectional_attention": false,
                          "rope_local_base_freq": 10000, "cache_implementation": "hybrid"})"},
      {"cohere2", R"({"layer_switch": 4, "order_of_interleaved_layers": "local_attn_first",
                      "position_embedding_type": "rope_gptj", "use_embedding_sharing": true,
                      "use_gated_activation": true, "use_parallel_block": true, "rotary_pct": 1.0,
                      "use_parallel_embedding": true, "use_qk_norm": false})"},
      {"phi3", R"({"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": false,
                   "original_max_position_embeddings": 512, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
                   "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}})"},
      {"gpt_oss", R"({"experts_per_token": 2, "num_local_experts": 4,
                      "initial_context_length": 4096, "swiglu_limit": 7.0, "router_aux_loss_coef": 0.9, "rope_scaling":
                      {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                       "original_max_position_embeddings": 4096, "truncate": false}})"},
      {"hunyuan_v1_dense", R"({"use_qk_norm": true, "use_cla": false, "cla_share_factor": 2,
                               "norm_type": "rms", "num_experts": 1, "org_vocab_size": 100,
                               "use_rotary_pos_emb": true, "xdrope_section": null, "im_end_id": 5,
                               "attention_head_dim": 16, "add_classification_head": false,
                               "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0,
                                "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                                "mscale_all_dim": 1.0}})"},
      {"qwen3_moe",
       R"({"qkv_bias": false, "shared_expert_intermediate_size": 0, "use_qk_norm": true,
                        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32})"},
      {"gpt2", R"({"n_special": 0, "predict_special_tokens": true, "n_ctx": 512, "dropout": 0.1})"},
      {"gpt_neox",
       R"({"attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0, "rotary_pct": 0.25,
                       "masked_softmax_fusion": true, "hidden_act": "gelu_fast"})"},
      // As older versions of the library wrote all their defaults.
      {"mistral", R"({"diversity_penalty": 0.0, "encoder_no_repeat_ngram_size": 0, "num_beams": 1,
                      "no_repeat_ngram_size": 0, "num_beam_groups": 1, "num_return_sequences": 1})"},
      {"falcon", R"({"apply_residual_connection_post_layernorm": false, "multi_query": true,
                     "new_decoder_architecture": false, "alibi": false, "bias": false,
                     "parallel_attn": true, "hidden_dropout": 0.0})"},
      {"nemotron", R"({"kv_channels": 128, "rope_percent": 0.5, "norm_eps": 1e-5})"},
      {"exaone4", R"({"sliding_window_pattern": "LLLG", "sliding_window": 64})"},
      {"deepseek_v3", R"({"ep_size": 1, "seq_aux": true, "aux_loss_alpha": 0.001, "n_group": 1,
                          "topk_method": "noaux_tc", "scoring_func": "sigmoid", "topk_group": 1,
                          "moe_layer_freq": 1, "num_experts_per_tok": 2, "n_routed_experts": 4,
                          "n_shared_experts": 1, "first_k_dense_replace": 1, "qk_head_dim": 16,
                          "kv_lora_rank": 8, "q_lora_rank": null, "qk_nope_head_dim": 8,
                          "qk_rope_head_dim": 8, "v_head_dim": 8, "head_dim": 8,
                          "moe_intermediate_size": 32, "num_nextn_predict_layers": 1})"},
  };
  for (const Case& c : cases) {
    json config = llama_config();
    config["model_type"] = c.model_type;
    config.update(json::parse(c.fields));
    EXPECT_EQ(error_of(config), "") << c.model_type;
  }
}

TEST(ConfigHf, ErrorsShowNamesInOneShortLine) {
  json config = llama_config();
  config[std::string("a\0b", 3)] = 1;
  EXPECT_NE(error_of(config).find("field 'a\\x00b': 1 is not known"), std::string::npos)
      << error_of(config);
  config = llama_config();
  config[std::string(5000, 'k')] = 1;
  EXPECT_LT(error_of(config).size(), 300U);
  config = llama_config();
  config["odd"] = "aääääääääääääääääääääääääääääää";
  EXPECT_TRUE(formats::is_utf8(error_of(config)));
  config = llama_config();
  config["model_type"] = "qwen3_moe";
  config.update(json{{"num_experts", 4}, {"num_experts_per_tok", 2}, {"use_qk_norm", false}});
  EXPECT_NE(error_of(config).find("use_qk_norm"), std::string::npos) << error_of(config);
}

// A null is an absent field, so that the family's default holds; a cap or window can be none.
TEST(ConfigHf, NullsAreAbsentFields) {
  json config = llama_config();
  config["model_type"] = "gemma2";
  for (const char* field : {"hidden_activation", "query_pre_attn_scalar", "tie_word_embeddings",
                            "head_dim", "rope_scaling", "layer_types", "sliding_window"}) {
    config[field] = nullptr;
  }
  const ModelConfig c = read(config);
  EXPECT_EQ(c.activation, plan::Activation::gelu_tanh);
  EXPECT_FLOAT_EQ(c.attention_scale, 1.0F / 16.0F);
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_EQ(c.layers[0].head_dim, 16U);
  EXPECT_EQ(c.layers[0].window, 0U);
  config["attn_logit_softcapping"] = nullptr;
  EXPECT_EQ(read(config).attention_softcap, 0.0F);
}

}  // namespace
}  // namespace wisp::model
