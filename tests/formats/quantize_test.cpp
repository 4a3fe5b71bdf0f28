// Encoders against the errors that llama.cpp's make on the same rows
// (tools/make_quantize_fixture.py), and on rows that are out of the ordinary.
#include "formats/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

const TensorView& fixture(const std::string& name) {
  static const MappedTensors contents =
      open_safetensors(data_folder() / "quantize" / "reference.safetensors");
  for (const TensorView& tensor : contents.tensors) {
    if (tensor.name == name) return tensor;
  }
  fail("the fixture has no {}", name);
}

constexpr DType kBlockTypes[] = {DType::Q8_0,   DType::Q4_0,  DType::Q4_1, DType::Q5_0,
                                 DType::Q5_1,   DType::Q4_K,  DType::Q5_K, DType::Q6_K,
                                 DType::IQ4_NL, DType::IQ4_XS};

// What is read back of an encoded row.
std::vector<float> coded(DType dtype, std::span<const float> row,
                         std::span<const float> importance = {}) {
  std::vector<std::byte> blocks(row_bytes(dtype, row.size()));
  encode_row(dtype, row, importance, blocks.data());
  std::vector<float> values(row.size());
  dtype_info(dtype).dequantize(blocks.data(), values.data(), values.size());
  return values;
}

// Mean of the squared errors times the weights, which are 1 where none are given.
double mean_error(std::span<const float> found, std::span<const float> wanted,
                  std::span<const float> weights = {}) {
  double sum = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double error = static_cast<double>(found[i]) - static_cast<double>(wanted[i]);
    sum += error * error * (weights.empty() ? 1.0 : static_cast<double>(weights[i]));
  }
  return sum / static_cast<double>(wanted.size());
}

std::vector<float> gaussian_row(size_t size, float scale) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> row(size);
  for (float& value : row) value = normal(random);
  return row;
}

class Quantizer : public testing::TestWithParam<DType> {};

// Where importances weigh, the reference trades plain and weighted errors a little differently.
TEST_P(Quantizer, IsAsGoodAsTheReference) {
  constexpr double kBound = 1.02;
  const std::vector<float> importance = tensor_to_f32(fixture("importance"));
  for (const std::string kind : {"gauss", "heavy", "embeddings"}) {
    SCOPED_TRACE(kind);
    const TensorView& tensor = fixture(kind + ".rows");
    const std::vector<float> rows = tensor_to_f32(tensor);
    const std::vector<float> reference =
        tensor_to_f32(fixture(kind + "." + std::string(dtype_name(GetParam())) + ".errors"));
    double plain = 0, weighed = 0, weighted = 0;
    for (size_t i = 0; i < tensor.shape[0]; ++i) {
      const auto row = std::span(rows).subspan(i * tensor.shape[1], tensor.shape[1]);
      plain += mean_error(coded(GetParam(), row), row);
      const std::vector<float> other = coded(GetParam(), row, importance);
      weighed += mean_error(other, row);
      weighted += mean_error(other, row, importance);
    }
    const auto count = static_cast<double>(tensor.shape[0]);
    EXPECT_LE(plain / count, static_cast<double>(reference[0]));
    EXPECT_LE(weighed / count, kBound * static_cast<double>(reference[1]));
    EXPECT_LE(weighted / count, kBound * static_cast<double>(reference[2]));
  }
}

TEST_P(Quantizer, KeepsZeros) {
  for (const float zero : {0.0f, -0.0f}) {
    const std::vector<float> row(256, zero);
    for (const float value : coded(GetParam(), row)) EXPECT_EQ(value, 0.0f);
  }
}

// To f16's precision, less what IQ4 types give up since they have no zero.
TEST_P(Quantizer, KeepsOneValueAmongZeros) {
  for (const float single : {1.0f, -1.0f, 300.0f, -3e-2f}) {
    std::vector<float> row(256);
    row[77] = single;
    EXPECT_NEAR(coded(GetParam(), row)[77], single, 3e-3f * std::fabs(single));
  }
}

TEST_P(Quantizer, TurnsWhatIsTooSmallForItsScalesIntoZero) {
  const std::vector<float> row(256, std::numeric_limits<float>::denorm_min());
  for (const float value : coded(GetParam(), row)) EXPECT_EQ(value, 0.0f);
}

// 100 times what f16 holds: the largest scale is stored, and nothing becomes infinite.
TEST_P(Quantizer, StaysFiniteBeyondTheRangeOfItsScales) {
  for (const float scale : {6.5e6f, std::numeric_limits<float>::max()}) {
    std::vector<float> row(256, scale);
    for (size_t i = 0; i < row.size(); i += 2) row[i] = -scale;
    const std::vector<float> values = coded(GetParam(), row);
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_TRUE(std::isfinite(values[i]));
      EXPECT_GE(std::fabs(values[i]), 65504.0f);
      EXPECT_EQ(std::signbit(values[i]), std::signbit(row[i])) << i;
    }
  }
}

// Scales are powers of two apart, so their f16 have the same digits.
TEST_P(Quantizer, DoesNotDependOnAPowerOfTwo) {
  const std::vector<float> row = gaussian_row(512, 16.0f);
  std::vector<float> larger = row;
  for (float& value : larger) value *= 64.0f;
  const std::vector<float> values = coded(GetParam(), row);
  const std::vector<float> scaled = coded(GetParam(), larger);
  for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(values[i] * 64.0f, scaled[i]) << i;
}

TEST_P(Quantizer, TakesImportancesOfAnyKind) {
  const std::vector<float> row = gaussian_row(512, 1.0f);
  const double usual = mean_error(coded(GetParam(), row), row);
  const std::vector<float> zeros(row.size(), 0.0f);
  EXPECT_EQ(coded(GetParam(), row, zeros), coded(GetParam(), row));
  for (const float size : {1e-30f, 1.0f, 1e30f}) {
    std::vector<float> importance(row.size(), size);
    for (size_t i = 0; i < row.size(); i += 3) importance[i] = 0.0f;
    EXPECT_LE(mean_error(coded(GetParam(), row, importance), row, importance),
              1.1 * usual * static_cast<double>(size));
  }
}

// Only the values with weight count, so they come out better than without.
TEST_P(Quantizer, SpendsItsPrecisionWhereTheWeightIs) {
  if (GetParam() == DType::Q8_0) return;  // takes no notice
  const std::vector<float> row = gaussian_row(2048, 1.0f);
  std::vector<float> importance(row.size(), 1e-3f);
  for (size_t i = 0; i < row.size(); i += 4) importance[i] = 1.0f;
  EXPECT_LT(mean_error(coded(GetParam(), row, importance), row, importance),
            0.95 * mean_error(coded(GetParam(), row), row, importance));
}

TEST_P(Quantizer, RefusesWhatIsNotFinite) {
  std::vector<float> row(256, 1.0f);
  row[200] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of([&] { coded(GetParam(), row); }), "column 200: nan is not a finite number");
  row[3] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(error_of([&] { coded(GetParam(), row); }), "column 3: -inf is not a finite number");
}

INSTANTIATE_TEST_SUITE_P(BlockTypes, Quantizer, testing::ValuesIn(kBlockTypes),
                         [](const testing::TestParamInfo<DType>& type) {
                           return std::string(dtype_name(type.param));
                         });

TEST(Quantize, RoundsPlainTypesAndRefusesWhatTheyCannotHold) {
  EXPECT_EQ(coded(DType::F16, std::vector{1.0f, 65519.0f}), (std::vector{1.0f, 65504.0f}));
  EXPECT_EQ(error_of([] {
              coded(DType::F16, std::vector{1.0f, -65520.0f});
            }),
            "column 1: -65520 is too large for F16");
  EXPECT_EQ(coded(DType::F32, std::vector{3e38f}), std::vector{3e38f});
  EXPECT_EQ(error_of([] { coded(DType::BF16, std::vector{std::numeric_limits<float>::max()}); }),
            "column 0: 3.4028235e+38 is too large for BF16");
}

TEST(Quantize, SaysWhichTypesItWrites) {
  for (const DType dtype : kBlockTypes) EXPECT_TRUE(can_encode(dtype));
  EXPECT_TRUE(can_encode(DType::F16));
  EXPECT_FALSE(can_encode(DType::I32));
  EXPECT_FALSE(can_encode(DType::Q2_K));
}

}  // namespace
}  // namespace wisp::formats
