#include "model/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config_file.h"

namespace wisp::model {
namespace {

using nlohmann::json;

TEST(ConfigHf, ReadsTheOlderForm) {
  const ModelConfig c = read(llama_config());
  EXPECT_EQ(c.family, "llama");
  EXPECT_EQ(c.layers[1].head_dim, 16U);
  EXPECT_EQ(c.rope.theta, 50000.0);
  EXPECT_EQ(c.rope.rotary_dim, 16U);
  EXPECT_EQ(c.rope.style, plan::RopeStyle::half);
  EXPECT_EQ(c.layers.size(), 2U);
  EXPECT_FLOAT_EQ(c.attention_scale, 0.25F);
}

TEST(ConfigHf, BothFormsOfRopeScalingAgree) {
  json older = llama_config();
  older["rope_scaling"] = {
      {"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
  json today = llama_config();
  today.erase("rope_theta");
  today["rope_parameters"] = {{"rope_type", "yarn"},
                              {"factor", 4.0},
                              {"rope_theta", 50000.0},
                              {"original_max_position_embeddings", 128}};
  for (const json& config : {older, today}) {
    const ModelConfig c = read(config);
    EXPECT_EQ(c.rope.scaling, RopeScaling::yarn);
    EXPECT_EQ(c.rope.factor, 4.0);
    EXPECT_EQ(c.rope.theta, 50000.0);
    EXPECT_EQ(c.rope.original_context, 128U);
  }
}

TEST(ConfigHf, WindowsComeFromLayerTypesOrHoldForAll) {
  json config = llama_config();
  config["model_type"] = "mistral";
  config["sliding_window"] = 16;
  EXPECT_EQ(read(config).layers[1].window, 16U);
  config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(read(config).layers[0].window, 0U);
  EXPECT_EQ(read(config).layers[1].window, 16U);
}

TEST(ConfigHf, QwenSlidesOnlyWhenToldTo) {
  json config = llama_config();
  config["model_type"] = "qwen2";
  config["sliding_window"] = 16;
  config["use_sliding_window"] = false;
  EXPECT_EQ(read(config).layers[1].window, 0U);
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 1;
  EXPECT_EQ(read(config).layers[0].window, 0U);
  EXPECT_EQ(read(config).layers[1].window, 16U);
}

TEST(ConfigHf, SmolLm3LeavesRopeOutOfSomeLayers) {
  json config = llama_config();
  config["model_type"] = "smollm3";
  config["num_hidden_layers"] = 4;
  EXPECT_EQ(read(config).layers[2].rope, LayerRope::global);
  EXPECT_EQ(read(config).layers[3].rope, LayerRope::none);
  config["no_rope_layers"] = {0, 1, 1, 1};
  EXPECT_EQ(read(config).layers[0].rope, LayerRope::none);
  EXPECT_EQ(read(config).layers[3].rope, LayerRope::global);
}

TEST(ConfigHf, ErrorsNameTheField) {
  struct Case {
    const char* field;
    json value;
    const char* message;
  };
  const Case cases[] = {
      {"hidden_size", nullptr, "field 'hidden_size' is missing"},
      {"hidden_size", "64", "field 'hidden_size': expected a whole number, found \"64\""},
      {"hidden_size", -1, "field 'hidden_size': expected a whole number, found -1"},
      {"hidden_size", 0, "hidden_size is 0"},
      {"num_attention_heads", 0, "num_attention_heads"},
      {"num_hidden_layers", 4000000000U, "num_hidden_layers"},
      {"num_key_value_heads", 3, "not a multiple of num_kv_heads 3"},
      {"model_type", "nonesuch", "model_type 'nonesuch' is not supported; known: bitnet, "},
      {"model_type", nullptr, "field 'model_type' is missing"},
      {"hidden_act", "tanhh", "activation 'tanhh'"},
      {"rope_theta", 0.0, "rope_theta is 0"},
      {"rms_norm_eps", -1.0, "norm_eps is -1"},
      {"rope_scaling", json{{"type", "dynamic"}}, "rope type 'dynamic'"},
      {"rope_scaling", json{{"type", "linear"}}, "field 'rope_scaling.factor' is missing"},
      {"rope_scaling", 5, "expected an object, found 5"},
      {"layer_types", json{"full_attention"}, "expected a list of 2"},
      {"layer_types", json{"full_attention", "strange"}, "layer 1: type \"strange\""},
      {"partial_rotary_factor", 2.0, "partial_rotary_factor"},
      {"vocab_size", 4000000000U, "vocab_size is 4000000000"},
  };
  for (const Case& c : cases) {
    json config = llama_config();
    config[c.field] = c.value;
    EXPECT_NE(error_of(config).find(c.message), std::string::npos)
        << c.field << ": " << error_of(config);
  }
}

TEST(ConfigHf, RangeErrorsNameTheField) {
  struct Case {
    const char* model_type;
    const char* fields;
    const char* message;
  };
  const Case cases[] = {
      {"llama", R"({"rope_scaling": {"type": "linear", "factor": -2.0}})", "rope factor is -2"},
      {"llama", R"({"rope_scaling": {"type": "yarn", "factor": 2.0, "mscale": -1.0}})",
       "rope mscale is -1"},
      {"llama", R"({"rope_scaling": {"type": "yarn", "factor": 2.0, "mscale_all_dim": -1.0}})",
       "rope mscale_all_dim is -1"},
      {"llama", R"({"rope_scaling": {"type": "yarn", "factor": 2.0, "beta_fast": 1.0}})",
       "rope beta_slow is 1 and beta_fast 1, expected more"},
      {"llama", R"({"rope_scaling": {"type": "yarn", "factor": 2.0, "attention_factor": 0}})",
       "rope attention_factor is 0"},
      {"llama", R"({"rope_scaling": {"type": "llama3", "factor": 8.0, "low_freq_factor": 0.0}})",
       "rope low_freq_factor is 0"},
      {"llama", R"({"rope_scaling": {"type": "llama3", "factor": 8.0, "low_freq_factor": 4.0}})",
       "rope low_freq_factor is 4 and high_freq_factor 4"},
      {"llama", R"({"rope_scaling": {"type": "yarn", "factor": 2.0,
                    "original_max_position_embeddings": 1}})",
       "rope original_max_position_embeddings is 1"},
      {"granite", R"({"residual_multiplier": 1e60})", "residual_scale is inf"},
      {"granite", R"({"logits_scaling": 0.0})", "logit_scale is inf"},
      {"gemma2", R"({"attn_logit_softcapping": -1.0})", "attention_softcap is -1"},
      {"gemma2", R"({"final_logit_softcapping": -1.0})", "logit_softcap is -1"},
      {"olmo", R"({"clip_qkv": -1.0})", "qkv_clip is -1"},
      {"mixtral", R"({"num_experts_per_tok": 9})", "num_experts_per_token is 9"},
  };
  for (const Case& c : cases) {
    json config = llama_config();
    config["model_type"] = c.model_type;
    config.update(json::parse(c.fields));
    EXPECT_NE(error_of(config).find(c.message), std::string::npos)
        << c.fields << ": " << error_of(config);
  }
}

TEST(ConfigHf, FamiliesKnowWhatTheirConfigsLeaveOut) {
  json config = llama_config();
  config["model_type"] = "gemma2";
  config.erase("tie_word_embeddings");
  const ModelConfig gemma = read(config);
  EXPECT_TRUE(gemma.tie_word_embeddings);
  EXPECT_FLOAT_EQ(gemma.attention_softcap, 50.0F);
  EXPECT_FLOAT_EQ(gemma.embedding_scale, 8.0F);
  EXPECT_EQ(gemma.layers[0].window, 4096U);  // every other layer sees all
  EXPECT_EQ(gemma.layers[1].window, 0U);
  config["tie_word_embeddings"] = false;
  config["attn_logit_softcapping"] = nullptr;
  EXPECT_FALSE(read(config).tie_word_embeddings);
  EXPECT_EQ(read(config).attention_softcap, 0.0F);
}

TEST(ConfigHf, IntervalsOfLayersWithoutAWindow) {
  json config = llama_config();
  config["model_type"] = "exaone4";
  config["num_hidden_layers"] = 4;
  config["sliding_window"] = 16;
  const auto windows = [&] {
    std::vector<uint32_t> result;
    for (const LayerConfig& layer : read(config).layers) result.push_back(layer.window);
    return result;
  };
  EXPECT_EQ(windows(), (std::vector<uint32_t>{16, 16, 16, 0}));
  config["sliding_window_pattern"] = "LG";
  EXPECT_EQ(windows(), (std::vector<uint32_t>{16, 0, 16, 0}));
  config["sliding_window_pattern"] = 3;
  EXPECT_EQ(windows(), (std::vector<uint32_t>{16, 16, 0, 16}));
  config["sliding_window_pattern"] = 0;
  EXPECT_NE(error_of(config).find("'sliding_window_pattern': 0 is no interval"), std::string::npos);
}

TEST(ConfigHf, OtherNamesOfTheSameFields) {
  const ModelConfig c = read(json::parse(R"({
    "model_type": "gpt2", "vocab_size": 100, "n_embd": 64, "n_layer": 3, "n_head": 4,
    "n_positions": 128})"));
  EXPECT_EQ(c.hidden_size, 64U);
  EXPECT_EQ(c.num_layers, 3U);
  EXPECT_EQ(c.layers[0].intermediate_size, 256U);
  EXPECT_EQ(c.max_position_embeddings, 128U);
  EXPECT_FLOAT_EQ(c.norm_eps, 1e-5F);
  EXPECT_EQ(c.layers[0].rope, LayerRope::none);
}

TEST(ConfigHf, RopeForEachTypeOfLayer) {
  json config = llama_config();
  config["model_type"] = "gemma3_text";
  config["layer_types"] = {"sliding_attention", "full_attention"};
  config["sliding_window"] = 16;
  json today = config;
  today["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  json older = config;
  older["rope_theta"] = 1e6;
  older["rope_local_base_freq"] = 1e4;
  older["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  for (const json& form : {today, older}) {
    const ModelConfig c = read(form);
    EXPECT_EQ(c.rope.theta, 1e6);
    EXPECT_EQ(c.rope.scaling, RopeScaling::linear);
    ASSERT_TRUE(c.local_rope);
    EXPECT_EQ(c.local_rope->theta, 1e4);
    EXPECT_EQ(c.local_rope->scaling, RopeScaling::none);
    EXPECT_EQ(c.layers[0].rope, LayerRope::local);
    EXPECT_EQ(c.layers[1].rope, LayerRope::global);
  }
}

TEST(ConfigHf, LongropeHasAFactorForEachPair) {
  json config = llama_config();
  config["model_type"] = "phi3";
  config["original_max_position_embeddings"] = 128;
  config["rope_scaling"] = {{"type", "su"},
                            {"short_factor", std::vector<double>(8, 1.0)},
                            {"long_factor", std::vector<double>(8, 2.0)}};
  EXPECT_EQ(read(config).rope.scaling, RopeScaling::longrope);
  EXPECT_EQ(read(config).rope.factor, 4.0);
  config["rope_scaling"]["long_factor"] = {1.0};
  EXPECT_NE(error_of(config).find("longrope has 1 factors, expected 8"), std::string::npos);
}

TEST(ConfigHf, ExpertsOfSomeLayers) {
  json config = llama_config();
  config["model_type"] = "qwen3_moe";
  config["num_hidden_layers"] = 4;
  config["num_experts"] = 8;
  config["num_experts_per_tok"] = 3;
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {3};
  const ModelConfig c = read(config);
  EXPECT_EQ(c.experts->top_k, 3U);
  EXPECT_FALSE(c.layers[0].experts);
  EXPECT_TRUE(c.layers[1].experts);
  EXPECT_FALSE(c.layers[3].experts);
  config["num_experts_per_tok"] = 9;
  EXPECT_NE(error_of(config).find("num_experts_per_token is 9"), std::string::npos);
}

TEST(ConfigHf, WindowsOnlyWhereTheFamilyHasThem) {
  json config = llama_config();
  config["sliding_window"] = 16;
  EXPECT_EQ(read(config).layers[1].window, 0U);
  config["model_type"] = "mistral";
  EXPECT_EQ(read(config).layers[1].window, 16U);
  config["model_type"] = "qwen2";
  EXPECT_EQ(read(config).layers[1].window, 0U);  // without use_sliding_window
}

json gemma4_config() {
  json config = llama_config();
  config.erase("rope_theta");
  config["model_type"] = "gemma4_text";
  config["head_dim"] = 16;
  config["num_hidden_layers"] = 6;
  config["layer_types"] = {"sliding_attention", "sliding_attention", "full_attention",
                           "sliding_attention", "sliding_attention", "full_attention"};
  config["hidden_size_per_layer_input"] = 0;
  return config;
}

// Files of before per_layer_config name the sizes of layers without a window.
TEST(ConfigHf, Gemma4HasSizesOfLayersWithoutAWindow) {
  json config = gemma4_config();
  config["global_head_dim"] = 32;
  config["num_global_key_value_heads"] = 1;
  EXPECT_EQ(read(config).layers[5].num_kv_heads, 2U);  // only with keys as values
  config["attention_k_eq_v"] = true;
  const ModelConfig c = read(config);
  EXPECT_EQ(c.layers[0].head_dim, 16U);
  EXPECT_EQ(c.layers[0].num_kv_heads, 2U);
  EXPECT_FALSE(c.layers[0].keys_as_values);
  EXPECT_EQ(c.layers[5].head_dim, 32U);
  EXPECT_EQ(c.layers[5].num_kv_heads, 1U);
  EXPECT_TRUE(c.layers[5].keys_as_values);
  EXPECT_EQ(c.local_rope->rotary_dim, 16U);
  EXPECT_EQ(c.local_rope->scaling, RopeScaling::none);
  EXPECT_EQ(c.rope.rotary_dim, 32U);
  EXPECT_EQ(c.rope.scaling, RopeScaling::proportional);
  EXPECT_EQ(c.rope.proportion, 0.25);
  EXPECT_EQ(kv_layers(c).size(), 6U);
}

TEST(ConfigHf, Gemma4SharesKeysAndValuesByTypeOfLayer) {
  json config = gemma4_config();
  config["global_head_dim"] = 32;
  config["num_kv_shared_layers"] = 3;
  config["use_double_wide_mlp"] = true;
  const ModelConfig c = read(config);
  EXPECT_FALSE(c.layers[2].kv_of);
  EXPECT_EQ(c.layers[3].kv_of, 1U);
  EXPECT_EQ(c.layers[4].kv_of, 1U);
  EXPECT_EQ(c.layers[5].kv_of, 2U);
  EXPECT_EQ(c.layers[2].intermediate_size, 96U);
  EXPECT_EQ(c.layers[3].intermediate_size, 192U);
  EXPECT_EQ(kv_layers(c).size(), 3U);
  EXPECT_EQ(kv_layers(c)[2].head_dim, 32U);
  config["num_kv_shared_layers"] = 4;
  EXPECT_NE(error_of(config).find("layer 2 has no earlier layer"), std::string::npos);
  config["num_kv_shared_layers"] = 7;
  EXPECT_NE(error_of(config).find("7 of 6 layers share"), std::string::npos);
}

TEST(ConfigHf, Gemma4RefusesWhatItDoesNotDo) {
  struct Case {
    const char* field;
    json value;
    const char* message;
  };
  const Case cases[] = {
      {"use_bidirectional_attention", "all", "'use_bidirectional_attention': 'all'"},
      {"hidden_size_per_layer_input", 8, "'vocab_size_per_layer_input'"},
      {"per_layer_config", {{"2", {{"head_dim", 32}}}}, "layers of one type have heads of 32"},
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "linear"}, {"factor", 2.0}}},
        {"sliding_attention", {{"rope_type", "default"}}}},
       "rope type 'linear' is not supported"},
      {"rope_parameters", {{"rope_type", "default"}}, "'rope_parameters.sliding_attention'"},
      {"intermediate_size", 2147483680U, "'intermediate_size' is 2147483680"},
  };
  for (const Case& c : cases) {
    json config = gemma4_config();
    config[c.field] = c.value;
    EXPECT_NE(error_of(config).find(c.message), std::string::npos)
        << c.field << ": " << error_of(config);
  }
}

TEST(ConfigHf, SingleLayersHaveOtherSizes) {
  json config = gemma4_config();
  config["per_layer_config"] = {
      {"2", {{"head_dim", 32}, {"num_key_value_heads", 1}, {"intermediate_size", 128}}},
      {"5", {{"head_dim", 32}}}};
  const ModelConfig c = read(config);
  EXPECT_EQ(c.layers[0].head_dim, 16U);
  EXPECT_EQ(c.layers[2].head_dim, 32U);
  EXPECT_EQ(c.layers[2].num_kv_heads, 1U);
  EXPECT_EQ(c.layers[2].intermediate_size, 128U);
  EXPECT_EQ(c.layers[5].num_kv_heads, 2U);
  EXPECT_EQ(shared_size(c, &LayerConfig::head_dim), std::nullopt);
  config["per_layer_config"] = {{"1", {{"sliding_window", 8}}}};
  EXPECT_NE(error_of(config).find("'per_layer_config.1.sliding_window' is not supported"),
            std::string::npos)
      << error_of(config);
  for (const char* layer : {"6", "-1", "x", ""}) {
    config["per_layer_config"] = {{layer, json::object()}};
    EXPECT_NE(error_of(config).find("field 'per_layer_config'"), std::string::npos) << layer;
  }
  json other = llama_config();
  other["per_layer_config"] = {{"1", {{"head_dim", 32}}}};
  EXPECT_NE(error_of(other).find("'per_layer_config' is not supported"), std::string::npos);
}

TEST(ConfigHf, Gemma3nHasSizesAndCutoffsOfEachLayer) {
  json config = gemma4_config();
  config["model_type"] = "gemma3n_text";
  config["hidden_size_per_layer_input"] = 8;
  config["vocab_size_per_layer_input"] = config["vocab_size"].get<int>() - 1;
  config["num_kv_shared_layers"] = 2;
  config["intermediate_size"] = {96, 96, 96, 96, 96, 128};
  config["activation_sparsity_pattern"] = {0.95, 0.5, 0.0, 0.0, 0.0, 0.0};
  const ModelConfig c = read(config);
  EXPECT_EQ(c.layers[5].intermediate_size, 128U);
  EXPECT_EQ(c.per_layer_vocab, c.vocab_size - 1);
  EXPECT_NEAR(c.layers[0].gate_cutoff.value(), 1.6448536, 1e-6);
  EXPECT_NEAR(c.layers[1].gate_cutoff.value(), 0.0, 1e-6);
  EXPECT_FALSE(c.layers[2].gate_cutoff);
  EXPECT_EQ(c.layers[4].kv_of, 3U);
  EXPECT_EQ(c.layers[5].kv_of, 2U);
  EXPECT_EQ(c.streams->count, 4U);
  EXPECT_EQ(c.local_rope->theta, 10000.0);
  EXPECT_EQ(c.rope.theta, 1000000.0);
  json typed = config;
  typed["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}}},
                              {"sliding_attention", {{"rope_type", "default"}}}};
  EXPECT_EQ(read(typed).local_rope->theta, 10000.0);
  EXPECT_EQ(read(typed).rope.theta, 1000000.0);
  typed["rope_local_base_freq"] = 5000.0;
  EXPECT_EQ(read(typed).local_rope->theta, 5000.0);

  struct Case {
    const char* field;
    json value;
    const char* message;
  };
  const Case cases[] = {
      {"altup_active_idx", 1, "altup_active_idx 1 is not supported"},
      {"altup_correct_scale", false, "'altup_correct_scale': false is not supported"},
      {"altup_num_inputs", 1, "1 streams"},
      {"vocab_size_per_layer_input", 300000, "300000 of"},
      {"intermediate_size", {96, 96}, "'intermediate_size' has 2 numbers"},
      {"activation_sparsity_pattern", {0.5}, "'activation_sparsity_pattern' has 1 numbers"},
      {"activation_sparsity_pattern", {1.0, 0, 0, 0, 0, 0}, "'activation_sparsity_pattern': 1"},
  };
  for (const Case& bad : cases) {
    json spoilt = config;
    spoilt[bad.field] = bad.value;
    EXPECT_NE(error_of(spoilt).find(bad.message), std::string::npos)
        << bad.field << ": " << error_of(spoilt);
  }
}

// Text positions are equal on all axes, so a text model runs as it would without.
TEST(ConfigHf, SectionsOfRotaryAxes) {
  json config = llama_config();  // 8 pairs
  config["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {2, 3, 3}}};
  EXPECT_EQ(read(config).rope.sections, (std::vector<uint32_t>{2, 3, 3}));
  EXPECT_EQ(read(config).rope.scaling, RopeScaling::none);
  EXPECT_FALSE(read(config).rope.interleaved_sections);
  config["rope_scaling"]["mrope_interleaved"] = true;
  EXPECT_TRUE(read(config).rope.interleaved_sections);
  for (const json& sections : {json{2, 3, 4}, json{4, 4}, json{4294967295U, 8, 1}}) {
    config["rope_scaling"]["mrope_section"] = sections;
    EXPECT_NE(error_of(config).find("expected 3 that add up to 8"), std::string::npos)
        << error_of(config);
  }
}

TEST(ConfigHf, ScalingBesideParametersGoesBeforeThem) {
  json config = llama_config();
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 20000.0}};
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(read(config).rope.scaling, RopeScaling::linear);
  EXPECT_EQ(read(config).rope.theta, 20000.0);
}

TEST(ConfigHf, WhatAFamilyDoesNotSupportIsRefused) {
  struct Case {
    const char* model_type;
    const char* field;
    json value;
  };
  const Case cases[] = {{"falcon", "alibi", true},
                        {"falcon", "parallel_attn", false},
                        {"phi", "qk_layernorm", true},
                        {"gemma3_text", "use_bidirectional_attention", true},
                        {"gpt2", "scale_attn_by_inverse_layer_idx", true},
                        {"gpt_oss", "swiglu_limit", 9.0},
                        {"llama", "quantization_config", {{"quant_method", "hqq"}}}};
  for (const Case& c : cases) {
    json config = llama_config();
    config["model_type"] = c.model_type;
    config[c.field] = c.value;
    const std::string error = error_of(config);
    EXPECT_NE(error.find(c.field), std::string::npos) << error;
    EXPECT_NE(error.find("is not supported"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace wisp::model
