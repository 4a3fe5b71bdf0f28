#include "model/config_gguf.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "model/model.h"
#include "temporary_folder.h"

namespace wisp::model {
namespace {

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
  metadata.set("llama.attention.layer_norm_rms_epsilon", 1e-5);
  return metadata;
}

ModelConfig read(const formats::Metadata& metadata) {
  return read_gguf_config(GgufFields(metadata, "llama"));
}

TEST(ConfigGguf, ReadsKeysBelowTheArchitecture) {
  formats::Metadata metadata = gguf_metadata();
  metadata.set("llama.rope.freq_base", 50000.0);
  const ModelConfig c = read(metadata);
  EXPECT_EQ(c.layers[1].head_dim, 16U);
  EXPECT_EQ(c.rope.theta, 50000.0);
  EXPECT_EQ(c.vocab_size, 0U);
  EXPECT_THROW(read_gguf_config(GgufFields(metadata, "qwen2")), Error);
}

TEST(ConfigGguf, ListsGiveEachLayerItsSize) {
  formats::Metadata metadata = gguf_metadata();
  metadata.set("llama.attention.head_count_kv", std::vector<int64_t>{4, 1});
  metadata.set("llama.feed_forward_length", std::vector<int64_t>{96, 192});
  const ModelConfig c = read(metadata);
  EXPECT_EQ(c.layers[0].num_kv_heads, 4U);
  EXPECT_EQ(c.layers[1].num_kv_heads, 1U);
  EXPECT_EQ(c.layers[1].intermediate_size, 192U);
  metadata.set("llama.feed_forward_length", std::vector<int64_t>{96, 192, 96});
  EXPECT_THROW(read(metadata), Error);
}

TEST(ConfigGguf, SectionsOfRotaryAxes) {
  formats::Metadata metadata = gguf_metadata();
  metadata.set("llama.rope.dimension_sections", std::vector<int64_t>{2, 3, 3, 0});
  EXPECT_EQ(read(metadata).rope.sections, (std::vector<uint32_t>{2, 3, 3}));
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

TEST(ConfigGguf, UnknownKeysAreRefused) {
  struct Case {
    const char* key;
    formats::MetadataValue value;
    bool known;
  };
  const Case cases[] = {
      {"llama.tilt", 2.0, false},
      {"llama.tilt", 0.0, true},  // none
      {"llama.tilt", false, true},
      {"llama.tilt", std::vector<int64_t>{}, true},
      {"llama.tilt", std::string("x"), false},
      {"other.tilt", 2.0, true},  // of another architecture
      {"llama.attention.causal", true, true},
      {"llama.attention.causal", false, false},
      {"llama.expert_gating_func", int64_t{1}, true},
      {"llama.expert_gating_func", int64_t{2}, false},
      {"llama.final_logit_softcapping", 30.0, true},
      {"llama.final_logit_softcapping", 0.0, true},
      {"llama.final_logit_softcapping", 20.0, false},
      {"llama.pooling_type", int64_t{4}, true},
      {"llama.rope.freq_base", 5000.0, true},
  };
  for (const Case& c : cases) {
    formats::Metadata metadata = gguf_metadata();
    metadata.set(c.key, c.value);
    const GgufFields fields(metadata, "llama");
    read_gguf_config(fields);
    if (c.known) {
      EXPECT_NO_THROW(fields.refuse_unread("llama")) << c.key;
      continue;
    }
    try {
      fields.refuse_unread("llama");
      ADD_FAILURE() << c.key;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(c.key), std::string::npos) << error.what();
    }
  }
}

// What llama.cpp stores when it writes a model that it holds.
TEST(ConfigGguf, ValuesThatSayNothingAreKnown) {
  formats::Metadata metadata = gguf_metadata();
  for (const auto& [key, value] : std::vector<std::pair<const char*, double>>{
           {"activation.situ_beta", 1.0},
           {"expert_group_scale", double{0.05F}},
           {"rope.freq_base_swa", 10000.0},
           {"rope.scaling.yarn_log_multiplier", double{0.1F}},
           {"router_logit_softcapping", 30.0}}) {
    metadata.set(std::string("llama.") + key, value);
  }
  metadata.set("llama.swiglu_clamp_exp", std::vector<double>{0.0, 0.0});
  metadata.set("llama.deepstack_mapping", std::vector<int64_t>{-1, -1});
  metadata.set("llama.attention.key_length_swa", int64_t{16});
  metadata.set("llama.rope.dimension_sections", std::vector<int64_t>{0, 0, 0, 0});
  const auto refuse = [&] {
    const GgufFields fields(metadata, "llama");
    EXPECT_TRUE(read_gguf_config(fields).rope.sections.empty());
    fields.refuse_unread("llama");
  };
  EXPECT_NO_THROW(refuse());
  metadata.set("llama.swiglu_clamp_exp", std::vector<double>{0.0, 7.0});
  EXPECT_THROW(refuse(), Error);
}

TEST(ConfigGguf, PatternsAreListsOrIntervals) {
  formats::Metadata metadata = gguf_metadata();
  const auto pattern = [&](uint32_t layers) {
    return GgufFields(metadata, "llama").get_pattern("pattern", layers, 2);
  };
  EXPECT_EQ(pattern(3), (std::vector<bool>{true, false, true}));
  metadata.set("llama.pattern", int64_t{3});
  EXPECT_EQ(pattern(3), (std::vector<bool>{true, true, false}));
  metadata.set("llama.pattern", int64_t{0});
  EXPECT_EQ(pattern(2), (std::vector<bool>{true, true}));
  metadata.set("llama.pattern", std::vector<bool>{false, true});
  EXPECT_EQ(pattern(2), (std::vector<bool>{false, true}));
  EXPECT_THROW(pattern(3), Error);
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

// The message of loading a fixture whose metadata `change` has changed and whose tensor `dropped`
// is left out.
std::string error_of(std::string_view fixture, void (*change)(formats::Metadata&),
                     std::string_view dropped = "") {
  const auto source = formats::Checkpoint::open(std::filesystem::path(WISP_SOURCE_DIR) /
                                                "tests/data/models" / fixture / "model.gguf");
  formats::Metadata metadata = source.metadata();
  change(metadata);
  std::vector<formats::GgufTensor> tensors;
  for (const formats::TensorView& t : source.tensors()) {
    if (t.name != dropped) tensors.push_back({t.name, t.dtype, t.shape, [&t] { return t.data; }});
  }
  const std::filesystem::path path = temporary_folder() / "changed.gguf";
  formats::write_gguf(path, metadata, tensors);
  try {
    load_model(formats::Checkpoint::open(path), {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void change_nothing(formats::Metadata& /*metadata*/) {}

TEST(ConfigGguf, Gemma4StatesTheSizesThatItComputesWith) {
  EXPECT_EQ(error_of("gguf_gemma4", change_nothing), "");
  struct Case {
    void (*change)(formats::Metadata&);
    const char* message;
  };
  const Case cases[] = {
      {[](auto& m) { m.set("gemma4.rope.dimension_count", int64_t{8}); },
       "gemma4.rope.dimension_count: 8 in heads of 16"},
      {[](auto& m) { m.set("gemma4.rope.dimension_count_swa", int64_t{4}); },
       "gemma4.rope.dimension_count_swa: 4 in heads of 8"},
      {[](auto& m) { m.set("gemma4.attention.value_length_swa", int64_t{4}); },
       "gemma4.attention.value_length_swa: 4 in heads of 8"},
  };
  for (const Case& c : cases) {
    const std::string error = error_of("gguf_gemma4", c.change);
    EXPECT_NE(error.find(c.message), std::string::npos) << error;
  }
}

// Without them more pairs would turn than the model was trained with.
TEST(ConfigGguf, Gemma4NeedsItsRopeFactors) {
  const std::string error = error_of("gguf_gemma4", change_nothing, "rope_freqs.weight");
  EXPECT_NE(error.find("tensor 'rope_freqs.weight' is missing"), std::string::npos) << error;
}

TEST(ConfigGguf, NormsHaveAnEpsilon) {
  const auto drop = [](formats::Metadata& m) {
    formats::Metadata rest;
    for (const auto& [key, value] : m.values()) {
      if (key != "lfm2.attention.layer_norm_rms_epsilon") rest.set(key, value);
    }
    m = rest;
  };
  const std::string error = error_of("gguf_lfm2", drop);
  EXPECT_NE(error.find("'lfm2.attention.layer_norm_rms_epsilon' is missing"), std::string::npos)
      << error;
}

TEST(ConfigGguf, Qwen35SaysWhichLayersRecur) {
  EXPECT_EQ(error_of("gguf_qwen3_5", change_nothing), "");
  struct Case {
    void (*change)(formats::Metadata&);
    const char* message;
  };
  const Case cases[] = {
      {[](auto& m) { m.set("qwen35.attention.recurrent_layers", std::vector<bool>{true}); },
       "'qwen35.attention.recurrent_layers' has 1 values, expected 4"},
      {[](auto& m) { m.set("qwen35.ssm.inner_size", int64_t{65}); },
       "'qwen35.ssm.inner_size' is 65, of 4 heads"},
  };
  for (const Case& c : cases) {
    const std::string error = error_of("gguf_qwen3_5", c.change);
    EXPECT_NE(error.find(c.message), std::string::npos) << error;
  }
}

TEST(ConfigGguf, WindowsMayBeListed) {
  const auto nothing_slides = [](formats::Metadata& m) {
    m.set("cohere2.attention.sliding_window_pattern", std::vector<bool>{true});
  };
  const std::string error = error_of("gguf_cohere2", nothing_slides);
  EXPECT_NE(error.find("'cohere2.attention.sliding_window_pattern' has 1 values"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace wisp::model
