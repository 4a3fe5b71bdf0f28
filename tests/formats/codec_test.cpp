// Codecs against what the Python package gguf makes of the same blocks
// (tools/make_codec_fixture.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/codec_grids.h"
#include "formats/dtype.h"
#include "formats/safetensors.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

const TensorView& fixture(const std::string& name) {
  static const MappedTensors contents =
      open_safetensors(data_folder() / "codecs" / "codecs.safetensors");
  for (const TensorView& tensor : contents.tensors) {
    if (tensor.name == name) return tensor;
  }
  fail("the fixture has no {}", name);
}

std::vector<const DTypeInfo*> rows(bool (*wanted)(const DTypeInfo&)) {
  std::vector<const DTypeInfo*> result;
  for (const DTypeInfo& info : all_dtypes()) {
    if (wanted(info) && info.dtype != DType::F32) result.push_back(&info);
  }
  return result;
}

std::string row_name(const testing::TestParamInfo<const DTypeInfo*>& row) {
  return std::string(row.param->name);
}

// NaN has many forms, of which none is meant; every other value has to have the same bits.
void expect_same_bits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i]))
        << "value " << i << ": expected " << expected[i] << ", found " << found[i];
  }
}

class Decoder : public testing::TestWithParam<const DTypeInfo*> {};

TEST_P(Decoder, GivesTheBitsOfTheReference) {
  const DTypeInfo& info = *GetParam();
  const TensorView& blocks = fixture(std::string(info.name) + ".blocks");
  const auto expected = values_of<float>(fixture(std::string(info.name) + ".values").data);
  ASSERT_EQ(blocks.data.size() / info.block_bytes * info.block_elements, expected.size());
  ASSERT_GE(expected.size(), 64 * info.block_elements);
  std::vector<float> values(expected.size());
  info.dequantize(blocks.data.data(), values.data(), values.size());
  expect_same_bits(values, expected);
}

TEST_P(Decoder, ReadsBlocksAtAnyAddress) {
  const DTypeInfo& info = *GetParam();
  const TensorView& blocks = fixture(std::string(info.name) + ".blocks");
  std::vector<std::byte> moved(blocks.data.size() + 1);
  std::copy(blocks.data.begin(), blocks.data.end(), moved.begin() + 1);
  const size_t count = blocks.data.size() / info.block_bytes * info.block_elements;
  std::vector<float> expected(count);
  std::vector<float> values(count);
  info.dequantize(blocks.data.data(), expected.data(), count);
  info.dequantize(moved.data() + 1, values.data(), count);
  expect_same_bits(values, expected);
}

INSTANTIATE_TEST_SUITE_P(EveryDecoder, Decoder, testing::ValuesIn(rows([](const DTypeInfo& info) {
                           // Blocks that no file has are in grouped_test.cpp.
                           return info.dequantize != nullptr &&
                                  (info.gguf_id || !info.safetensors_name.empty());
                         })),
                         row_name);

class Encoder : public testing::TestWithParam<const DTypeInfo*> {};

TEST_P(Encoder, GivesTheBlocksOfTheReference) {
  const DTypeInfo& info = *GetParam();
  const auto input = values_of<float>(fixture(std::string(info.name) + ".input").data);
  const auto expected = values_of<uint8_t>(fixture(std::string(info.name) + ".encoded").data);
  ASSERT_EQ(expected.size(), row_bytes(info.dtype, input.size()));
  std::vector<std::byte> blocks(expected.size());
  info.quantize(input.data(), blocks.data(), input.size());
  for (size_t i = 0; i < expected.size(); i += info.block_bytes) {
    if (info.block_elements == 1 && std::isnan(input[i / info.block_bytes])) continue;
    for (size_t byte = i; byte < i + info.block_bytes; ++byte) {
      ASSERT_EQ(std::to_integer<int>(blocks[byte]), expected[byte])
          << "block " << i / info.block_bytes << ", byte " << byte - i;
    }
  }
}

TEST_P(Encoder, TakesAnyFloat) {
  const DTypeInfo& info = *GetParam();
  std::vector<float> input(32 * 5, 1.0f);
  input[0] = std::numeric_limits<float>::quiet_NaN();
  input[33] = std::numeric_limits<float>::infinity();
  input[65] = -std::numeric_limits<float>::max();
  for (size_t i = 96; i < 128; ++i) input[i] = std::numeric_limits<float>::denorm_min();
  std::vector<std::byte> blocks(row_bytes(info.dtype, input.size()));
  info.quantize(input.data(), blocks.data(), input.size());
  std::vector<float> values(input.size());
  info.dequantize(blocks.data(), values.data(), values.size());
  for (size_t i = 128; i < 160; ++i) EXPECT_NEAR(values[i], 1.0f, 1e-3f);
}

INSTANTIATE_TEST_SUITE_P(EveryEncoder, Encoder, testing::ValuesIn(rows([](const DTypeInfo& info) {
                           return info.quantize != nullptr;
                         })),
                         row_name);

// Blocks of the fixture need not name every entry.
TEST(Grids, HoldTheValuesOfTheReference) {
  const std::pair<const char*, std::span<const std::byte>> grids[] = {
      {"IQ2_XXS", std::as_bytes(std::span(kIq2XxsGrid))},
      {"IQ2_XS", std::as_bytes(std::span(kIq2XsGrid))},
      {"IQ2_S", std::as_bytes(std::span(kIq2SGrid))},
      {"IQ3_XXS", std::as_bytes(std::span(kIq3XxsGrid))},
      {"IQ3_S", std::as_bytes(std::span(kIq3SGrid))},
      {"IQ1_S", std::as_bytes(std::span(kIq1Grid))},
  };
  for (const auto& [name, bytes] : grids) {
    EXPECT_TRUE(std::ranges::equal(bytes, fixture(std::string(name) + ".grid").data)) << name;
  }
}

TEST(F32, IsCopied) {
  const std::vector<float> values = {1.0f, -0.0f, 3e-40f};
  std::vector<std::byte> bytes(12);
  std::vector<float> back(3);
  dtype_info(DType::F32).quantize(values.data(), bytes.data(), 3);
  dtype_info(DType::F32).dequantize(bytes.data(), back.data(), 3);
  expect_same_bits(back, values);
}

}  // namespace
}  // namespace wisp::formats
