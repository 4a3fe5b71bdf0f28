// Types of the mixes, as llama.cpp's quantize chooses them, and the files that come out.
#include "model/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "formats/gguf.h"
#include "formats/quantize.h"
#include "formats/tensor.h"
#include "temporary_folder.h"

namespace wisp::model {
namespace {

using enum formats::DType;
using formats::DType;
namespace fs = std::filesystem;

struct Tensor {
  std::string name;
  std::vector<uint64_t> shape;
};

// A file with the tensors as F32, all different.
formats::Checkpoint make_file(const std::string& name, const std::vector<Tensor>& tensors,
                              const formats::Metadata& metadata,
                              const std::map<std::string, float>& last_values = {}) {
  std::vector<std::vector<float>> values;
  std::vector<formats::GgufTensor> list;
  for (const Tensor& tensor : tensors) {
    std::vector<float>& data = values.emplace_back(formats::element_count(tensor.shape));
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = std::sin(static_cast<float>(i * i + 7 * values.size()));
    }
    const auto last = last_values.find(tensor.name);
    if (last != last_values.end()) data.back() = last->second;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    list.push_back({tensors[i].name, F32, tensors[i].shape,
                    [&values, i] { return std::as_bytes(std::span(values[i])); }});
  }
  const fs::path path = temporary_folder() / name;
  formats::write_gguf(path, metadata, list);
  return formats::Checkpoint::open(path);
}

formats::Metadata llama(int64_t layers) {
  formats::Metadata metadata;
  metadata.set("general.architecture", std::string("llama"));
  metadata.set("llama.block_count", layers);
  metadata.set("llama.attention.head_count", int64_t{4});
  metadata.set("llama.attention.head_count_kv", int64_t{2});
  return metadata;
}

// Layers of which each has the matrices `names`.
std::vector<Tensor> layered(int64_t layers, const std::vector<std::string>& names) {
  std::vector<Tensor> tensors = {{"token_embd.weight", {2, 256}}, {"output.weight", {2, 256}}};
  for (int64_t layer = layers - 1; layer >= 0; --layer) {  // the order in the file is no matter
    for (const std::string& name : names) {
      tensors.push_back({fmt::format("blk.{}.{}.weight", layer, name), {2, 256}});
    }
  }
  return tensors;
}

std::map<std::string, DType> types_of(const formats::Checkpoint& file, std::string_view mix,
                                      bool with_importance = false) {
  const std::vector<DType> types = quantized_types(file, *find_quantize_mix(mix), with_importance);
  std::map<std::string, DType> named;
  for (size_t i = 0; i < types.size(); ++i) named[file.tensors()[i].name] = types[i];
  return named;
}

// The layers whose tensor `name` has the type.
std::vector<int64_t> layers_with(const std::map<std::string, DType>& types, std::string_view name,
                                 DType dtype) {
  std::vector<int64_t> layers;
  for (int64_t layer = 0;; ++layer) {
    const auto found = types.find(fmt::format("blk.{}.{}.weight", layer, name));
    if (found == types.end()) return layers;
    if (found->second == dtype) layers.push_back(layer);
  }
}

using Layers = std::vector<int64_t>;
const Layers kSensitive = {0, 1, 4, 7, 10, 13, 14, 15};  // of 16

std::vector<std::string> layer_names() {
  return {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
}

TEST(QuantizeMix, IsFoundInAnyCase) {
  for (const QuantizeMix& mix : quantize_mixes()) EXPECT_EQ(find_quantize_mix(mix.name), &mix);
  EXPECT_EQ(find_quantize_mix("q4_k_m"), find_quantize_mix("Q4_K_M"));
  EXPECT_EQ(find_quantize_mix("Q4_K"), nullptr);
}

TEST(QuantizeMix, GivesSensitiveTensorsALargerType) {
  const auto file = make_file("mix.gguf", layered(16, layer_names()), llama(16));
  struct Row {
    const char* mix;
    DType base;
    DType larger;
    Layers values;
    Layers ffn_down;
  };
  const Layers first_two = {0, 1};
  const Row rows[] = {
      {"Q4_K_M", Q4_K, Q6_K, kSensitive, kSensitive},
      {"Q5_K_M", Q5_K, Q6_K, kSensitive, kSensitive},
      {"Q4_K_S", Q4_K, Q5_K, {0, 1, 2, 3}, first_two},
      {"Q5_K_S", Q5_K, Q6_K, {}, {}},
      {"Q6_K", Q6_K, Q8_0, {}, {}},
      {"Q8_0", Q8_0, F16, {}, {}},
      {"Q4_0", Q4_0, Q4_1, {}, {}},
      {"Q5_1", Q5_1, Q6_K, {}, {}},
      {"IQ4_NL", IQ4_NL, Q5_K, {}, first_two},
      {"IQ4_XS", IQ4_XS, Q5_K, {}, first_two},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.mix);
    const auto types = types_of(file, row.mix);
    EXPECT_EQ(types.at("token_embd.weight"), row.base);
    EXPECT_EQ(types.at("output.weight"), row.base == Q8_0 ? Q8_0 : Q6_K);
    EXPECT_EQ(layers_with(types, "attn_v", row.larger), row.values);
    EXPECT_EQ(layers_with(types, "ffn_down", row.larger), row.ffn_down);
    for (const char* name : {"attn_q", "attn_k", "attn_output", "ffn_gate", "ffn_up"}) {
      EXPECT_EQ(layers_with(types, name, row.base).size(), 16U) << name;
    }
  }
}

TEST(QuantizeMix, AsksWhetherThereIsAnImportanceMatrix) {
  const auto file = make_file("mix.gguf", layered(16, layer_names()), llama(16));
  EXPECT_EQ(layers_with(types_of(file, "Q4_0", true), "ffn_down", Q4_1), (Layers{0, 1}));
  EXPECT_EQ(layers_with(types_of(file, "Q5_0", true), "ffn_down", Q5_1), (Layers{0, 1}));
  EXPECT_EQ(layers_with(types_of(file, "IQ4_XS", true), "ffn_down", Q5_K), Layers{});
}

TEST(QuantizeMix, KnowsHeadsExpertsAndFamilies) {
  formats::Metadata metadata = llama(16);
  metadata.set("llama.attention.head_count", int64_t{8});
  const auto grouped = make_file("grouped.gguf", layered(16, layer_names()), metadata);
  EXPECT_EQ(layers_with(types_of(grouped, "IQ4_XS"), "attn_v", Q5_K).size(), 16U);

  metadata.set("llama.expert_count", int64_t{8});
  const auto experts = make_file("experts.gguf", layered(16, layer_names()), metadata);
  const auto types = types_of(experts, "Q4_K_M");
  EXPECT_EQ(layers_with(types, "attn_v", Q8_0).size(), 16U);
  EXPECT_EQ(layers_with(types, "attn_k", Q8_0).size(), 16U);
  EXPECT_EQ(layers_with(types, "attn_output", Q5_K).size(), 16U);

  // With experts the layer counts, not the position among tensors of the kind.
  metadata.set("llama.expert_count", int64_t{4});
  const auto many =
      make_file("many.gguf", layered(16, {"attn_v", "ffn_down_exps", "ffn_down_shexp"}), metadata);
  EXPECT_EQ(layers_with(types_of(many, "Q4_K_M"), "ffn_down_exps", Q6_K), kSensitive);
  EXPECT_EQ(layers_with(types_of(many, "Q4_K_M"), "ffn_down_shexp", Q6_K), kSensitive);

  formats::Metadata falcon;
  falcon.set("general.architecture", std::string("falcon"));
  falcon.set("falcon.block_count", int64_t{16});
  const auto old = make_file("falcon.gguf", layered(16, {"attn_qkv", "ffn_down"}), falcon);
  EXPECT_EQ(types_of(old, "Q4_K_M").at("output.weight"), Q8_0);
  EXPECT_EQ(layers_with(types_of(old, "Q4_K_M"), "ffn_down", Q6_K), Layers{0});
  EXPECT_EQ(layers_with(types_of(old, "Q4_K_M"), "ffn_down", Q5_K),
            Layers(kSensitive.begin() + 1, kSensitive.end()));
  EXPECT_EQ(layers_with(types_of(old, "Q4_K_M"), "attn_qkv", Q6_K), kSensitive);
}

TEST(QuantizeMix, TreatsTiedEmbeddingsAsTheOutput) {
  const auto file = make_file("tied.gguf", {{"token_embd.weight", {2, 256}}}, llama(1));
  EXPECT_EQ(types_of(file, "Q4_0").at("token_embd.weight"), Q6_K);
  EXPECT_EQ(types_of(file, "Q8_0").at("token_embd.weight"), Q8_0);
}

TEST(QuantizeMix, FallsBackToShorterBlocks) {
  const auto file = make_file("odd.gguf",
                              {{"output.weight", {2, 32}},
                               {"blk.0.attn_q.weight", {2, 288}},
                               {"blk.0.ffn_up.weight", {2, 40}}},
                              llama(1));
  const std::pair<const char*, DType> rows[] = {
      {"Q4_K_S", Q5_0}, {"Q5_K_S", Q5_1}, {"Q6_K", Q8_0}, {"IQ4_XS", IQ4_NL}, {"Q4_1", Q4_1}};
  for (const auto& [mix, expected] : rows) {
    const auto types = types_of(file, mix);
    EXPECT_EQ(types.at("blk.0.attn_q.weight"), expected) << mix;
    EXPECT_EQ(types.at("blk.0.ffn_up.weight"), F16) << mix;
    EXPECT_EQ(types.at("output.weight"), Q8_0) << mix;
  }
}

TEST(QuantizeMix, KeepsWhatIsSmall) {
  const std::vector<Tensor> kept = {{"blk.0.attn_norm.weight", {256}},
                                    {"blk.0.attn_q_norm.weight", {2, 256}},
                                    {"blk.0.ffn_gate_inp.weight", {4, 256}},
                                    {"blk.0.ffn_gate_inp_shexp.weight", {1, 256}},
                                    {"blk.0.ssm_conv1d.weight", {2, 256}},
                                    {"blk.0.shortconv.conv.weight", {2, 256}},
                                    {"blk.0.ssm_a", {2, 256}},
                                    {"blk.0.attn_q.bias", {256}},
                                    {"blk.0.time_mix_w1.weight", {2, 256}},
                                    {"position_embd.weight", {2, 256}}};
  const auto file = make_file("small.gguf", kept, llama(1));
  for (const auto& [name, dtype] : types_of(file, "Q4_0")) EXPECT_EQ(dtype, F32) << name;
}

// ---- files --------------------------------------------------------------------------------------

const fs::path& out_path() {
  static const fs::path path = temporary_folder() / "out.gguf";
  return path;
}

QuantizeReport write(const formats::Checkpoint& from, const QuantizeOptions& options,
                     size_t threads = 2) {
  formats::OutputFile file(out_path());
  ThreadPool pool(threads);
  const QuantizeReport report = quantize(from, file, options, pool);
  file.commit();
  return report;
}

std::string error_of(const formats::Checkpoint& from, const QuantizeOptions& options) {
  try {
    write(from, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Quantize, WritesAWholeFile) {
  formats::Metadata metadata = llama(1);
  metadata.set("split.no", int64_t{0});
  metadata.set("split.count", int64_t{1});
  metadata.set("general.file_type", int64_t{0});
  metadata.set("general.name", std::string("small"));
  const auto from = make_file("whole.gguf",
                              {{"token_embd.weight", {700, 256}},
                               {"blk.0.attn_norm.weight", {256}},
                               {"blk.0.attn_q.weight", {16, 512}}},
                              metadata);
  uint64_t last = 0;
  const QuantizeReport report =
      write(from, {.mix = *find_quantize_mix("Q4_K_M"), .progress = [&](uint64_t done, uint64_t n) {
                     EXPECT_GT(done, last);
                     EXPECT_EQ(n, 700 * 256 + 256 + 16 * 512);
                     last = done;
                   }});
  EXPECT_EQ(last, report.weights);
  EXPECT_EQ(report.bytes_before, 4 * report.weights);
  EXPECT_EQ(report.changed, 2U);
  EXPECT_EQ(report.twice, 0U);

  const auto to = formats::Checkpoint::open(out_path());
  EXPECT_EQ(report.bytes_after, to.total_bytes());
  EXPECT_EQ(to.metadata().get_int("general.file_type"), 15);
  EXPECT_EQ(to.metadata().get_int("general.quantization_version"), 2);
  EXPECT_EQ(*to.metadata().find_string("general.name"), "small");
  EXPECT_FALSE(to.metadata().contains("split.count"));
  ASSERT_EQ(to.tensors().size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const formats::TensorView& tensor = to.tensors()[i];
    EXPECT_EQ(tensor.name, from.tensors()[i].name);
    EXPECT_EQ(tensor.shape, from.tensors()[i].shape);
    const auto found = tensor_to_f32(tensor), wanted = tensor_to_f32(from.tensors()[i]);
    for (size_t k = 0; k < wanted.size(); ++k) {
      // Half a step of a Q4_K group that spans 2, and what its scales are off.
      ASSERT_NEAR(found[k], wanted[k], tensor.dtype == F32 ? 0.0f : 0.09f) << tensor.name;
    }
  }
  EXPECT_EQ(to.require("token_embd.weight").dtype, Q6_K);
  EXPECT_EQ(to.require("blk.0.attn_norm.weight").dtype, F32);
}

TEST(Quantize, GivesTheSameBytesOnAnyNumberOfThreads) {
  const auto from = make_file("threads.gguf", {{"blk.0.attn_q.weight", {300, 256}}}, llama(1));
  std::vector<std::string> files;
  for (const size_t threads : {1, 3}) {
    write(from, {.mix = *find_quantize_mix("Q4_K_S")}, threads);
    files.push_back(read_text(out_path()));
  }
  EXPECT_EQ(files[0], files[1]);
}

TEST(Quantize, WeighsTheColumnsOfEachMatrix) {
  const auto from = make_file("weighed.gguf",
                              {{"blk.0.ffn_up_exps.weight", {2, 3, 64}},
                               {"blk.0.attn_q.weight", {3, 64}},
                               {"token_embd.weight", {3, 64}},
                               {"output.weight", {3, 64}}},
                              llama(1));
  formats::Importance importance(128);
  for (size_t i = 0; i < importance.size(); ++i) importance[i] = static_cast<float>(i * i % 97);
  // Embeddings are looked up: what an imatrix has of their name may be of the output.
  const formats::Imatrix imatrix = {{"blk.0.ffn_up_exps.weight", importance},
                                    {"token_embd.weight", {1.0f, 2.0f}}};
  const QuantizeReport report =
      write(from, {.mix = *find_quantize_mix("Q4_0"), .imatrix = &imatrix});
  EXPECT_EQ(report.changed, 4U);
  EXPECT_EQ(report.without_importance, 3U);
  const auto to = formats::Checkpoint::open(out_path());
  const formats::TensorView& experts = to.require("blk.0.ffn_up_exps.weight");
  const std::vector<float> values = tensor_to_f32(from.require(experts.name));
  std::vector<std::byte> expected(experts.data.size());
  for (size_t row = 0; row < 6; ++row) {
    formats::encode_row(Q4_0, std::span(values).subspan(64 * row, 64),
                        std::span(importance).subspan(row / 3 * 64, 64),
                        expected.data() + 36 * row);
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), experts.data.begin()));
}

TEST(Quantize, CountsWhatWasQuantizedBefore) {
  const auto from = make_file("before.gguf", {{"blk.0.attn_q.weight", {2, 256}}}, llama(1));
  write(from, {.mix = *find_quantize_mix("Q8_0")});
  const fs::path first = temporary_folder() / "first.gguf";
  fs::rename(out_path(), first);
  const auto again = formats::Checkpoint::open(first);
  EXPECT_EQ(write(again, {.mix = *find_quantize_mix("Q4_K_S")}).twice, 1U);
  EXPECT_EQ(write(again, {.mix = *find_quantize_mix("Q8_0")}).changed, 0U);
}

TEST(Quantize, NamesTheTensorAtFault) {
  write_file(out_path(), {});
  const std::vector<Tensor> tensors = {{"blk.0.attn_norm.weight", {256}},
                                       {"blk.0.attn_q.weight", {2, 256}},
                                       {"blk.0.ffn_up.weight", {2, 8}}};
  const QuantizeOptions options{.mix = *find_quantize_mix("Q6_K")};
  const auto error = [&](const char* name, float value) {
    const auto from = make_file("bad.gguf", tensors, llama(1), {{name, value}});
    return error_of(from, options).substr(temporary_folder().string().size() + 1);
  };
  EXPECT_EQ(
      error("blk.0.attn_q.weight", NAN),
      "bad.gguf: tensor 'blk.0.attn_q.weight': row 1: column 255: nan is not a finite number");
  EXPECT_EQ(error("blk.0.attn_norm.weight", INFINITY),
            "bad.gguf: tensor 'blk.0.attn_norm.weight': row 0: column 255: inf is not a finite "
            "number");
  EXPECT_EQ(
      error("blk.0.ffn_up.weight", 1e6f),
      "bad.gguf: tensor 'blk.0.ffn_up.weight': row 1: column 7: 1000000 is too large for F16");
  const formats::Imatrix imatrix = {{"blk.0.attn_q.weight", {1.0f}}};
  const auto from = make_file("good.gguf", tensors, llama(1));
  EXPECT_NE(
      error_of(from, {.mix = options.mix, .imatrix = &imatrix})
          .find("good.gguf: tensor 'blk.0.attn_q.weight': the importance matrix is of another "
                "model: expected 256 values, found 1"),
      std::string::npos);
  // The file from before is untouched, and nothing else was left.
  EXPECT_EQ(fs::file_size(out_path()), 0U);
  for (const auto& entry : fs::directory_iterator(temporary_folder())) {
    EXPECT_NE(entry.path().extension(), ".tmp");
  }
}

TEST(Quantize, RefusesAFileThatIsNoModel) {
  const auto from = make_file("no_model.gguf", {{"x.weight", {2, 256}}}, {});
  EXPECT_NE(error_of(from, {.mix = *find_quantize_mix("Q6_K")})
                .find("no_model.gguf: no general.architecture"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp::model
