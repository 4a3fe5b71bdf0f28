// Folders with a quantization_config whose parts do not fit. What fits is in the models' golden
// tests.
#include "formats/hf_quantized.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

struct Stored {
  DType dtype;
  std::vector<uint64_t> shape;
};
using Tensors = std::map<std::string, Stored>;

// A folder of zeros in these tensors.
std::filesystem::path folder_of(const std::string& quantisation, const Tensors& tensors) {
  std::filesystem::path folder = temporary_path("quantised");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << "{\"quantization_config\": " << quantisation << "}";
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> views;
  bytes.reserve(tensors.size());
  for (const auto& [name, stored] : tensors) {
    bytes.emplace_back(tensor_bytes(stored.dtype, stored.shape));
    views.push_back({.name = name,
                     .dtype = stored.dtype,
                     .shape = stored.shape,
                     .data = bytes.back(),
                     .make_bytes = {}});
  }
  write_safetensors(folder / "model.safetensors", views);
  return folder;
}

std::string error_with(const std::string& quantisation, const Tensors& tensors) {
  return error_of([&] { Checkpoint::open(folder_of(quantisation, tensors)); });
}

constexpr char kGptq[] = R"({"quant_method": "gptq", "bits": 4, "group_size": 32})";

Tensors gptq() {
  return {{"a.qweight", {DType::I32, {8, 16}}},
          {"a.qzeros", {DType::I32, {2, 2}}},
          {"a.scales", {DType::F16, {2, 16}}}};
}

TEST(HfQuantized, PartsBecomeOneMatrix) {
  const Checkpoint checkpoint = Checkpoint::open(folder_of(kGptq, gptq()));
  ASSERT_EQ(checkpoint.tensors().size(), 1U);
  const TensorView& matrix = checkpoint.require("a.weight");
  EXPECT_EQ(matrix.dtype, DType::I4_32);
  EXPECT_EQ(matrix.shape, (std::vector<uint64_t>{16, 64}));
  EXPECT_EQ(checkpoint.total_bytes(), tensor_bytes(DType::I4_32, matrix.shape));
  EXPECT_EQ(matrix.make_bytes().size(), checkpoint.total_bytes());
}

struct Damage {
  const char* quantisation;
  Tensors tensors;
  const char* message;  // part of the one expected
};

Tensors changed(Tensors tensors, const std::string& name, Stored stored) {
  tensors[name] = std::move(stored);
  return tensors;
}

Tensors without(Tensors tensors, const std::string& name) {
  tensors.erase(name);
  return tensors;
}

TEST(HfQuantized, WhatDoesNotFitIsNamed) {
  const Tensors packed = {{"a.weight_packed", {DType::I32, {4, 8}}},
                          {"a.weight_scale", {DType::BF16, {4, 2}}},
                          {"a.weight_shape", {DType::I64, {2}}}};
  const Tensors bytes = {{"a.weight", {DType::F8_E4M3, {64, 64}}},
                         {"a.weight_scale_inv", {DType::F32, {2, 3}}}};
  constexpr char kFp8[] = R"({"quant_method": "fp8", "weight_block_size": [32, 32]})";
  constexpr char kCompressed[] = R"({"quant_method": "compressed-tensors"})";
  const Damage damages[] = {
      {"7", {}, "expected an object, found number"},
      {"{}", {}, "quant_method is missing"},
      {R"({"quant_method": "hqq"})", {}, "quant_method 'hqq' is not supported (there are: gptq"},
      {R"({"quant_method": "gptq", "bits": 3})", {}, "weights of 3 bits"},
      {R"({"quant_method": "gptq", "bits": "x"})", {}, "bits is \"x\""},
      {R"({"quant_method": "gptq", "checkpoint_format": "marlin"})", {}, "marlin"},
      {R"({"quant_method": "awq", "version": "gemv"})", {}, "version gemv"},
      {kGptq, without(gptq(), "a.scales"), "'a.scales' is missing"},
      {kGptq, changed(gptq(), "a.scales", {DType::I32, {2, 16}}), "has type I32, expected F16"},
      {kGptq, changed(gptq(), "a.qzeros", {DType::I32, {3, 2}}), "expected [2, 2]"},
      {kGptq, changed(gptq(), "a.qweight", {DType::I32, {9, 16}}), "not whole groups of 32"},
      {kGptq, changed(gptq(), "a.qweight", {DType::I32, {8, 15}}), "15 rows"},
      {kGptq, changed(gptq(), "a.qweight", {DType::I32, {8}}), "expected 2 dimensions"},
      {kGptq, changed(gptq(), "a.qweight", {DType::I32, {0, 16}}), "expected [0, 2]"},
      {kGptq, changed(gptq(), "a.g_idx", {DType::I32, {64}}), "desc_act"},
      {kCompressed, packed, "expected that of [0, 0]"},
      {kCompressed, without(packed, "a.weight_shape"), "'a.weight_shape' is missing"},
      {kCompressed, without(packed, "a.weight_scale"), "'a.weight_scale' is missing"},
      {kFp8, bytes, "has shape [2, 3], which does not fit"},
      {kFp8, without(bytes, "a.weight"), "'a.weight' is missing"},
      {kFp8, changed(bytes, "a.weight", {DType::F32, {64, 96}}), "has type F32"},
      {kFp8, changed(bytes, "a.weight", {DType::F8_E4M3, {0, 64}}), "expected a matrix"},
      {kFp8, changed(bytes, "a.weight", {DType::F8_E4M3, {64, 0}}), "expected a matrix"},
      {kFp8, changed(bytes, "a.weight", {DType::F8_E4M3, {64}}), "expected a matrix"},
      {kFp8, changed(bytes, "a.weight_scale_inv", {DType::F32, {64, 0}}), "does not fit"},
      {kFp8, changed(bytes, "a.weight_scale_inv", {DType::F32, {0}}), "does not fit"},
      {R"({"quant_method": "fp8", "weight_block_size": [0]})", bytes, "expected two numbers"},
      {R"({"quant_method": "fp8", "weight_block_size": [0, 0]})", bytes, "does not fit"},
      {R"({"quant_method": "mxfp4"})", {{"a_blocks", {DType::U8, {2, 3, 4}}}}, "'a_blocks'"},
      {R"({"quant_method": "mxfp4"})",
       {{"a_blocks", {DType::U8, {2, 3, 4, 16}}}},
       "'a_scales' is missing"},
  };
  for (const Damage& d : damages) {
    const std::string error = error_with(d.quantisation, d.tensors);
    EXPECT_NE(error.find(d.message), std::string::npos) << d.quantisation << ": " << error;
    EXPECT_NE(error.find("quantization_config"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace wisp::formats
