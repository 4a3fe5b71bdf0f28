#include "model/weights.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "model/model.h"
#include "temporary_folder.h"

namespace wisp::model {
namespace {

using formats::TensorView;

const std::filesystem::path kModels = std::filesystem::path(WISP_SOURCE_DIR) / "tests/data/models";
const std::filesystem::path kLlama = kModels / "llama";

// Copies the fixture's config, with one text in it replaced by another, and the tensors that
// `change` leaves in its list, then loads the result.
Model load_changed(void (*change)(std::vector<TensorView>&),
                   const std::filesystem::path& fixture = kLlama, std::string_view from = "",
                   std::string_view to = "") {
  static std::vector<std::byte> spare(1 << 20);
  const auto source = formats::Checkpoint::open(fixture);
  std::vector<TensorView> tensors(source.tensors().begin(), source.tensors().end());
  change(tensors);
  const std::filesystem::path& folder = temporary_folder();
  std::ifstream config_file(fixture / "config.json");
  std::string config(std::istreambuf_iterator<char>(config_file), {});
  config.replace(config.find(from), from.size(), to);
  std::ofstream(folder / "config.json") << config;
  for (TensorView& t : tensors) {
    const uint64_t bytes = formats::tensor_bytes(t.dtype, t.shape);
    if (bytes != t.data.size()) t.data = std::span(spare).first(bytes);
  }
  formats::write_safetensors(folder / "model.safetensors", tensors);
  const auto checkpoint = formats::Checkpoint::open(folder);
  return load_model(checkpoint, {});
}

std::string error_of(void (*change)(std::vector<TensorView>&), std::string_view from = "",
                     std::string_view to = "") {
  try {
    load_changed(change, kLlama, from, to);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TensorView& named(std::vector<TensorView>& tensors, std::string_view name) {
  for (TensorView& t : tensors) {
    if (t.name == name) return t;
  }
  throw std::logic_error("no such tensor");
}

TEST(Weights, QkvAndGateUpAreOneMatrixEach) {
  const auto checkpoint = formats::Checkpoint::open(kLlama);
  const Model model = load_model(checkpoint, {});
  ASSERT_EQ(model.layers[0].qkv.parts.size(), 1U);
  EXPECT_EQ(model.layers[0].qkv.rows, 64U + 2 * 32U);
  EXPECT_EQ(model.layers[0].up.parts.size(), 1U);
  EXPECT_EQ(model.weights.list.size(), model.weights.parts.size());
}

TEST(Weights, PartsOfOtherTypesStayApart) {
  const auto name = "model.layers.0.self_attn.v_proj.weight";
  const Model model = load_changed([](std::vector<TensorView>& t) {
    named(t, "model.layers.0.self_attn.v_proj.weight").dtype = formats::DType::F32;
  });
  ASSERT_EQ(model.layers[0].qkv.parts.size(), 2U) << name;
  EXPECT_EQ(model.layers[0].qkv.parts[1].rows, 32U);
  const plan::Plan plan = build_plan(model, {.max_columns = 4, .max_logits = 4});
  EXPECT_NE(to_string(plan, model.resources).find("out_offset=96"), std::string::npos);
}

// For each KV head: its q heads, k, v; the plan wants all q heads, all k, all v.
TEST(Weights, GroupedQkvIsPutInOrderWithoutACopy) {
  const auto checkpoint = formats::Checkpoint::open(kLlama.parent_path() / "falcon_new");
  const Model model = load_model(checkpoint, {});
  const TensorView* fused =
      checkpoint.find("transformer.h.0.self_attention.query_key_value.weight");
  ASSERT_NE(fused, nullptr);
  const Projection& qkv = model.layers[0].qkv;
  const auto& parts = model.weights.parts[plan::index(qkv.parts[0].weight)];
  const size_t head = 16 * 64 * sizeof(uint16_t);  // bytes of a head's rows
  ASSERT_EQ(parts.size(), 6U);
  const size_t order[] = {0, 4, 2, 6, 3, 7};  // q of both KV heads (2 heads each), k, v
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].data(), fused->data.data() + order[i] * head);
    EXPECT_EQ(parts[i].size(), (i < 2 ? 2 : 1) * head);
  }
}

TEST(Weights, NamesWithoutTheirFirstPart) {
  const auto source = formats::Checkpoint::open(kLlama.parent_path() / "gpt2");
  std::vector<TensorView> tensors(source.tensors().begin(), source.tensors().end());
  for (TensorView& t : tensors) {
    if (t.name.starts_with("transformer."))
      t.name.erase(0, std::string_view("transformer.").size());
  }
  const std::filesystem::path& folder = temporary_folder();
  std::filesystem::copy_file(kLlama.parent_path() / "gpt2/config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  formats::write_safetensors(folder / "model.safetensors", tensors);
  const auto checkpoint = formats::Checkpoint::open(folder);
  EXPECT_EQ(load_model(checkpoint, {}).weights.list.size(),
            load_model(source, {}).weights.list.size());
}

TEST(Weights, LayersForDraftingAreLeftAlone) {
  const auto source = formats::Checkpoint::open(kLlama.parent_path() / "deepseek_v3");
  std::vector<TensorView> tensors(source.tensors().begin(), source.tensors().end());
  const std::filesystem::path& folder = temporary_folder();
  std::filesystem::copy_file(kLlama.parent_path() / "deepseek_v3/config.json",
                             folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  // num_nextn_predict_layers is 1, of 3 layers.
  for (const char* name : {"model.layers.3.eh_proj.weight", "model.layers.3.mlp.gate.weight"}) {
    tensors.push_back(tensors[0]);
    tensors.back().name = name;
  }
  formats::write_safetensors(folder / "model.safetensors", tensors);
  const auto checkpoint = formats::Checkpoint::open(folder);
  EXPECT_EQ(load_model(checkpoint, {}).layers.size(), 3U);
}

// The last two layers take the keys and values of the first two; files may have theirs all the
// same.
TEST(Weights, LayersThatShareKeysAndValuesHaveNone) {
  const auto add_unused = [](std::vector<TensorView>& tensors) {
    TensorView unused = named(tensors, "model.layers.0.self_attn.k_proj.weight");
    unused.name = "model.layers.2.self_attn.k_proj.weight";
    tensors.push_back(unused);
  };
  const Model model = load_changed(add_unused, kModels / "gemma3n");
  ASSERT_EQ(model.layers.size(), 4U);
  EXPECT_EQ(model.resources.kv_layers.size(), 2U);
  EXPECT_EQ(model.layers[2].kv_layer, model.layers[0].kv_layer);
  EXPECT_EQ(model.layers[3].kv_layer, model.layers[1].kv_layer);
  EXPECT_NE(model.layers[1].kv_layer, model.layers[0].kv_layer);
  EXPECT_EQ(model.layers[0].qkv.rows, 128U);
  EXPECT_EQ(model.layers[2].qkv.rows, 64U);
  EXPECT_FALSE(model.layers[2].k_norm);
}

// Tokens of images have none.
TEST(Weights, MissingRowsOfLayersEmbeddingsAreZeros) {
  const auto drop_rows = [](std::vector<TensorView>& tensors) {
    named(tensors, "model.embed_tokens_per_layer.weight").shape = {280, 32};
  };
  EXPECT_THROW(load_changed(drop_rows, kModels / "gemma3n"), Error);
  const Model model =
      load_changed(drop_rows, kModels / "gemma3n", R"("vocab_size_per_layer_input": 288)",
                   R"("vocab_size_per_layer_input": 280)");
  const auto table = plan::index(model.per_layer->table);
  EXPECT_EQ(model.weights.list[table].rows, 288U);
  ASSERT_EQ(model.weights.parts[table].size(), 2U);
  EXPECT_EQ(model.weights.parts[table][1].size(), 8U * 32U * 2U);
  for (const std::byte b : model.weights.parts[table][1]) EXPECT_EQ(b, std::byte{0});
}

TEST(Weights, MissingTensor) {
  EXPECT_NE(error_of([](std::vector<TensorView>& t) {
              std::erase_if(t, [](auto& v) { return v.name == "model.norm.weight"; });
            }).find("tensor 'model.norm.weight' is missing"),
            std::string::npos);
}

constexpr std::string_view kDenied = "\"attention_bias\": false";
constexpr std::string_view kPromised = "\"attention_bias\": true";

void add_q_bias(std::vector<TensorView>& tensors) {
  tensors.push_back(named(tensors, "model.norm.weight"));
  tensors.back().name = "model.layers.0.self_attn.q_proj.bias";
}

TEST(Weights, ABiasOfSomePartsOnly) {
  EXPECT_NE(error_of(add_q_bias, kDenied, "\"attention_bias\": null")
                .find("tensor 'model.layers.0.self_attn.k_proj.bias' is missing"),
            std::string::npos);
}

TEST(Weights, BiasesAreThereAsTheConfigSays) {
  EXPECT_NE(error_of(add_q_bias).find("tensor 'model.layers.0.self_attn.q_proj.bias' is not used"),
            std::string::npos);
  const auto nothing = [](std::vector<TensorView>&) {};
  EXPECT_EQ(error_of(nothing), "");
  EXPECT_NE(error_of(nothing, kDenied, kPromised)
                .find("tensor 'model.layers.0.self_attn.q_proj.bias' is missing (and 11 more"),
            std::string::npos)
      << error_of(nothing, kDenied, kPromised);
  EXPECT_NE(error_of(nothing, "\"mlp_bias\": false", "\"mlp_bias\": true")
                .find("tensor 'model.layers.0.mlp.gate_proj.bias' is missing (and 8 more"),
            std::string::npos);
}

TEST(Weights, AStoredHeadThatDiffersIsUsed) {
  const auto add_head = [](std::vector<TensorView>& tensors) {
    TensorView head = named(tensors, "model.embed_tokens.weight");
    head.name = "lm_head.weight";
    std::erase_if(tensors, [](auto& t) { return t.name == "lm_head.weight"; });
    tensors.push_back(head);
  };
  const auto add_other_head = [](std::vector<TensorView>& tensors) {
    static std::vector<std::byte> other;
    TensorView head = named(tensors, "model.embed_tokens.weight");
    other.assign(head.data.begin(), head.data.end());
    other.back() ^= std::byte{1};
    head.name = "lm_head.weight";
    head.data = other;
    std::erase_if(tensors, [](auto& t) { return t.name == "lm_head.weight"; });
    tensors.push_back(head);
  };
  const std::string_view untied = "\"tie_word_embeddings\": false";
  const std::string_view tied = "\"tie_word_embeddings\": true";
  const Model same = load_changed(add_head, kLlama, untied, tied);
  EXPECT_EQ(same.lm_head.parts[0].weight, same.token_embedding);
  const Model other = load_changed(add_other_head, kLlama, untied, tied);
  EXPECT_NE(other.lm_head.parts[0].weight, other.token_embedding);
}

TEST(Weights, UnusedTensor) {
  EXPECT_NE(error_of([](std::vector<TensorView>& t) {
              t.push_back(t[0]);
              t.back().name = "model.extra";
            }).find("tensor 'model.extra' is not used by this model"),
            std::string::npos);
}

TEST(Weights, RedundantTablesAreLeftAlone) {
  EXPECT_EQ(error_of([](std::vector<TensorView>& t) {
              t.push_back(t[0]);
              t.back().name = "model.layers.0.self_attn.rotary_emb.inv_freq";
            }),
            "");
}

TEST(Weights, WrongShapeAndType) {
  EXPECT_NE(
      error_of([](std::vector<TensorView>& t) {
        named(t, "model.layers.1.mlp.up_proj.weight").shape = {96, 32};
      }).find("tensor 'model.layers.1.mlp.up_proj.weight' has shape [96, 32], expected [96, 64]"),
      std::string::npos);
  EXPECT_NE(error_of([](std::vector<TensorView>& t) {
              named(t, "model.norm.weight").dtype = formats::DType::I32;
            }).find("no weight type"),
            std::string::npos);
}

// Types that are decoded, but that backends do not multiply with, too.
TEST(Weights, EveryOtherTypeIsRefusedByName) {
  const auto source = formats::Checkpoint::open(kModels / "gguf_lfm2/model.gguf");
  const std::filesystem::path path = temporary_folder() / "changed.gguf";
  const std::vector<std::byte> bytes(1 << 20);
  const std::string name = "blk.1.ffn_down.weight";
  for (const formats::DTypeInfo& info : formats::all_dtypes()) {
    if (info.is_weight || !info.gguf_id || 64 % info.block_elements != 0) continue;
    std::vector<formats::GgufTensor> tensors;
    for (const TensorView& t : source.tensors()) {
      tensors.push_back({t.name, t.name == name ? info.dtype : t.dtype, t.shape, [&, &t = t] {
                           if (t.name != name) return t.data;
                           const uint64_t size = formats::tensor_bytes(info.dtype, t.shape);
                           return std::span(bytes).first(size);
                         }});
    }
    formats::write_gguf(path, source.metadata(), tensors);
    try {
      load_model(formats::Checkpoint::open(path), {});
      FAIL() << info.name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what())
                    .find("tensor 'blk.1.ffn_down.weight' has type " + std::string(info.name) +
                          ", which is no weight type"),
                std::string::npos)
          << error.what();
    }
  }
}

// For every fixture what load_model says, here nothing; and what it says of a wrong one.
TEST(Weights, TensorsAreCheckedWithoutReadingThem) {
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    if (!entry.is_directory()) continue;
    const auto gguf = entry.path() / "model.gguf";
    const auto path = std::filesystem::exists(gguf) ? gguf : entry.path();
    EXPECT_NO_THROW(check_tensors(formats::Checkpoint::open(path))) << path;
  }
  const auto source = formats::Checkpoint::open(kModels / "qwen3_moe");
  std::vector<TensorView> tensors(source.tensors().begin(), source.tensors().end());
  named(tensors, "model.layers.1.mlp.experts.3.up_proj.weight").shape = {64, 32};
  const std::filesystem::path& folder = temporary_folder();
  std::filesystem::copy_file(kModels / "qwen3_moe/config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  formats::write_safetensors(folder / "model.safetensors", tensors);
  try {
    check_tensors(formats::Checkpoint::open(folder));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("experts.3.up_proj.weight' has shape [64, 32], expe"),
              std::string::npos)
        << error.what();
  }
}

TEST(Weights, StacksAreNamedByAllTheyHold) {
  const auto name = [](const std::string& fixture) {
    const auto checkpoint = formats::Checkpoint::open(kModels / fixture);
    const Model model = load_model(checkpoint, {});
    return model.weights.list[plan::index(model.layers[1].experts->up.weight)].name;
  };
  EXPECT_EQ(name("qwen3_moe"),
            "model.layers.1.mlp.experts.*.gate_proj.weight+"
            "model.layers.1.mlp.experts.*.up_proj.weight");
  EXPECT_EQ(name("gguf_qwen3_moe/model.gguf"),
            "blk.1.ffn_gate_exps.weight+blk.1.ffn_up_exps.weight");
}

TEST(Weights, AllProblemsAreCounted) {
  EXPECT_NE(error_of([](std::vector<TensorView>& t) { t.clear(); }).find("more like it"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp::model
