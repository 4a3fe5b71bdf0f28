// Blocks that are made of a folder's groups, against the formula of the groups.
#include "formats/grouped.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "formats/half.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

struct Case {
  uint64_t rows, cols, group;
  uint32_t bits;
  DType dtype;  // expected
};

// Scales that f16 holds.
GroupedMatrix random_matrix(const Case& c) {
  std::mt19937 random(c.cols * 7 + c.group);
  GroupedMatrix m{.rows = c.rows, .cols = c.cols, .group = c.group};
  for (uint64_t i = 0; i < c.rows * c.cols; ++i) {
    m.codes.push_back(static_cast<uint8_t>(random() & ((1U << c.bits) - 1)));
  }
  for (uint64_t i = 0; i < c.rows * (c.cols / c.group); ++i) {
    m.scales.push_back(static_cast<float>(random() % 2048 + 1) * 0x1p-14F);
    m.zeros.push_back(static_cast<float>(random() % (1U << c.bits)));
  }
  return m;
}

std::vector<float> values(DType dtype, const std::vector<std::byte>& rows, uint64_t count) {
  std::vector<float> out(count);
  dtype_info(dtype).dequantize(rows.data(), out.data(), count);
  return out;
}

TEST(Grouped, IntegersKeepTheirValues) {
  for (const Case& c : {Case{3, 256, 128, 4, DType::I4_128}, Case{3, 256, 256, 4, DType::I4_128},
                        Case{2, 192, 64, 4, DType::I4_64}, Case{2, 192, 192, 4, DType::I4_64},
                        Case{5, 96, 32, 4, DType::I4_32}, Case{3, 96, 48, 4, DType::F32},
                        Case{3, 100, 100, 4, DType::F32}, Case{3, 256, 128, 8, DType::I8_128},
                        Case{3, 192, 64, 8, DType::I8_32}, Case{3, 20, 4, 8, DType::F32}}) {
    SCOPED_TRACE(fmt::format("{} x {} in {}, {} bits", c.rows, c.cols, c.group, c.bits));
    const GroupedMatrix m = random_matrix(c);
    const DType dtype = grouped_type(c.bits, c.cols, c.group);
    ASSERT_EQ(dtype, c.dtype);
    const std::vector<std::byte> rows = grouped_rows(m, dtype);
    ASSERT_EQ(rows.size(), c.rows * row_bytes(dtype, c.cols));
    const std::vector<float> found = values(dtype, rows, c.rows * c.cols);
    for (uint64_t i = 0; i < found.size(); ++i) {
      const uint64_t at = i / c.cols * (c.cols / c.group) + i % c.cols / c.group;
      ASSERT_EQ(found[i], m.scales[at] * (static_cast<float>(m.codes[i]) - m.zeros[at])) << i;
    }
  }
}

TEST(Grouped, FloatsKeepTheirValues) {
  for (const Case& c : {Case{3, 256, 128, 8, DType::F8_128}, Case{3, 192, 64, 8, DType::F8_32},
                        Case{3, 20, 20, 8, DType::F32}}) {
    SCOPED_TRACE(fmt::format("{} x {} in {}", c.rows, c.cols, c.group));
    GroupedMatrix m = random_matrix(c);
    for (float& scale : m.scales) scale *= 1.0F + 0x1p-20F;  // f32 all the way
    const DType dtype = float8_type(c.cols, c.group);
    ASSERT_EQ(dtype, c.dtype);
    const std::vector<float> found = values(dtype, float8_rows(m, dtype), c.rows * c.cols);
    for (uint64_t i = 0; i < found.size(); ++i) {
      const uint64_t at = i / c.cols * (c.cols / c.group) + i % c.cols / c.group;
      const float expected = m.scales[at] * e4m3_to_f32(m.codes[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(found[i])) << i;
      } else {
        ASSERT_EQ(found[i], expected) << i;
      }
    }
  }
}

// All values by the format's definition: 4 bits of exponent with a bias of 7, 3 of mantissa.
TEST(Grouped, E4m3IsExact) {
  for (int bits = 0; bits < 256; ++bits) {
    const int exponent = bits >> 3 & 15;
    const int mantissa = bits & 7;
    const double size =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    const float found = e4m3_to_f32(static_cast<uint8_t>(bits));
    if ((bits & 127) == 127) {
      EXPECT_TRUE(std::isnan(found)) << bits;
    } else {
      EXPECT_EQ(found, bits < 128 ? size : -size) << bits;
    }
  }
}

TEST(Grouped, ScalesBeyondF16AreRefused) {
  GroupedMatrix m{.rows = 1, .cols = 32, .group = 32};
  m.codes.assign(32, 3);
  m.scales = {1e6F};
  m.zeros = {8.0F};
  EXPECT_EQ(error_of([&] { grouped_rows(m, DType::I4_32); }), "a scale of 1000000 is beyond f16");
}

}  // namespace
}  // namespace wisp::formats
