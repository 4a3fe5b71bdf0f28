#include "formats/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace wisp::formats {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value by the definition of binary16, from its fields, for finite halves.
double value_of(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

bool is_nan_half(uint16_t half) { return (half & 0x7fff) > 0x7c00; }

TEST(Half, EveryHalfToFloatAndBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = f16_to_f32(half);
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << bits;
    if (is_nan_half(half)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(f32_to_f16(value), half | 0x200) << bits;
      continue;
    }
    if ((half & 0x7fff) == 0x7c00) {
      ASSERT_EQ(std::fabs(value), kInfinity);
    } else {
      ASSERT_EQ(static_cast<double>(value), value_of(half)) << bits;
    }
    ASSERT_EQ(f32_to_f16(value), half) << bits;
  }
}

TEST(Half, RoundsToNearestWithTiesToEven) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    // f32 holds the midpoint of neighbouring halves exactly.
    const auto middle = static_cast<float>((value_of(half) + value_of(half + 1)) / 2);
    const uint16_t even = half % 2 == 0 ? half : half + 1;
    ASSERT_EQ(f32_to_f16(middle), even) << half;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << half;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), half) << half;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, kInfinity)), half + 1) << half;
  }
}

TEST(Half, Extremes) {
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-3e38f), 0xfc00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xfc00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_TRUE(is_nan_half(f32_to_f16(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(is_nan_half(f32_to_f16(std::bit_cast<float>(0xffffffffu))));
}

TEST(BFloat16, UpperHalfOfAFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto bf16 = static_cast<uint16_t>(bits);
    const float value = bf16_to_f32(bf16);
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    ASSERT_EQ(f32_to_bf16(value), std::isnan(value) ? bf16 | 0x40 : bf16);
  }
}

TEST(BFloat16, RoundsToNearestWithTiesToEven) {
  const auto rounded = [](uint32_t bits) { return f32_to_bf16(std::bit_cast<float>(bits)); };
  EXPECT_EQ(rounded(0x3f807fff), 0x3f80);
  EXPECT_EQ(rounded(0x3f808000), 0x3f80);
  EXPECT_EQ(rounded(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded(0x3f818000), 0x3f82);
  EXPECT_EQ(rounded(0xbf818000), 0xbf82);
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80);
  EXPECT_EQ(rounded(0x00008001), 0x0001);
  EXPECT_EQ(rounded(0x7f800001), 0x7fc0);
}

}  // namespace
}  // namespace wisp::formats
