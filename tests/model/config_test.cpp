#include "model/config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "model/model.h"
#include "temporary_folder.h"

namespace wisp::model {
namespace {

using nlohmann::json;

json llama_config() {
  return json::parse(R"({
    "model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "tie_word_embeddings": true, "rope_theta": 50000.0, "torch_dtype": "bfloat16"})");
}

// Writes the config beside an empty weight file and reads it back as the program does.
ModelConfig read(const json& config) {
  const std::filesystem::path& folder = temporary_folder();
  std::ofstream(folder / "config.json") << config.dump();
  formats::write_safetensors(folder / "model.safetensors", {});
  return read_config(formats::Checkpoint::open(folder));
}

std::string error_of(const json& config) {
  try {
    read(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigHf, ReadsTheOlderForm) {
  const ModelConfig c = read(llama_config());
  EXPECT_EQ(c.family, "llama");
  EXPECT_EQ(c.head_dim, 16U);
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
      {"rope_scaling", json{{"type", "linear"}}, "field 'factor' is missing"},
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

formats::Metadata gguf_metadata() {
  formats::Metadata metadata;
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, int64_t>>{{"context_length", 512},
                                                    {"embedding_length", 64},
                                                    {"feed_forward_length", 96},
                                                    {"block_count", 2},
                                                    {"attention.head_count", 4},
                                                    {"attention.head_count_kv", 2}}) {
    metadata.set(std::string("llama.") + key, value);
  }
  return metadata;
}

ModelConfig read(const formats::Metadata& metadata) {
  return read_gguf_config(GgufFields(metadata, "llama"));
}

TEST(ConfigGguf, ReadsKeysBelowTheArchitecture) {
  formats::Metadata metadata = gguf_metadata();
  metadata.set("llama.rope.freq_base", 50000.0);
  const ModelConfig c = read(metadata);
  EXPECT_EQ(c.head_dim, 16U);
  EXPECT_EQ(c.rope.theta, 50000.0);
  EXPECT_EQ(c.vocab_size, 0U);
  EXPECT_THROW(read_gguf_config(GgufFields(metadata, "qwen2")), Error);
}

TEST(ConfigGguf, AFactorAloneIsLinearScaling) {
  EXPECT_EQ(read(gguf_metadata()).rope.scaling, RopeScaling::none);
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    formats::Metadata metadata = gguf_metadata();
    metadata.set(key, 4.0);
    EXPECT_EQ(read(metadata).rope.scaling, RopeScaling::linear) << key;
    EXPECT_EQ(read(metadata).rope.factor, 4.0) << key;
    metadata.set("llama.rope.scaling.type", std::string("none"));
    EXPECT_EQ(read(metadata).rope.scaling, RopeScaling::none) << key;
  }
}

TEST(ConfigGguf, YarnTakesAStoredAttentionFactor) {
  formats::Metadata metadata = gguf_metadata();
  metadata.set("llama.rope.scaling.type", std::string("yarn"));
  metadata.set("llama.rope.scaling.factor", 4.0);
  EXPECT_FALSE(read(metadata).rope.attention_factor);
  metadata.set("llama.rope.scaling.yarn_attn_factor", 1.5);
  EXPECT_EQ(read(metadata).rope.attention_factor, 1.5);
  metadata.set("llama.rope.scaling.attn_factor", 2.0);
  EXPECT_THROW(read(metadata), Error);
}

// llama.cpp's own writer stores every number it knows, also those that a model leaves out.
TEST(ConfigGguf, ZerosStandForNothing) {
  formats::Metadata metadata = gguf_metadata();
  metadata.set("llama.attention.scale", 0.0);
  metadata.set("llama.attention.sliding_window", int64_t{0});
  metadata.set("llama.rope.scaling.type", std::string("linear"));
  metadata.set("llama.rope.scaling.factor", 0.0);
  metadata.set("llama.rope.scaling.attn_factor", 1.0);
  metadata.set("llama.rope.scaling.yarn_ext_factor", -1.0);
  metadata.set("llama.rope.scaling.yarn_attn_factor", 1.0);
  const ModelConfig c = read(metadata);
  EXPECT_FLOAT_EQ(c.attention_scale, 0.25F);
  EXPECT_EQ(c.layers[0].window, 0U);
  EXPECT_EQ(c.rope.scaling, RopeScaling::none);
  EXPECT_EQ(c.rope.factor, 1.0);
  EXPECT_FALSE(c.rope.attention_factor);
}

}  // namespace
}  // namespace wisp::model
