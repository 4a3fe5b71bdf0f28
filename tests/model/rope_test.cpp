#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace wisp::model {
namespace {

TEST(Rope, DefaultTableIsCosAndSin) {
  const RopeConfig rope{.theta = 10000.0, .rotary_dim = 4};
  const std::vector<float> table = rope_table(rope, 3, {});
  ASSERT_EQ(table.size(), 12U);
  EXPECT_FLOAT_EQ(table[0], 1.0F);
  EXPECT_FLOAT_EQ(table[1], 0.0F);
  EXPECT_FLOAT_EQ(table[2 * 4], std::cos(2.0F));
  EXPECT_FLOAT_EQ(table[2 * 4 + 3], std::sin(2.0F * 0.01F));
}

TEST(Rope, LinearStretchesPositions) {
  const RopeConfig plain{.rotary_dim = 8};
  const RopeConfig linear{.rotary_dim = 8, .scaling = RopeScaling::linear, .factor = 4.0};
  const std::vector<float> a = rope_table(plain, 2, {});
  const std::vector<float> b = rope_table(linear, 5, {});
  for (int i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(a[8 + i], b[4 * 8 + i]);
}

TEST(Rope, Llama3KeepsFastPairsAndStretchesSlowOnes) {
  const RopeConfig rope{.theta = 500000.0,
                        .rotary_dim = 64,
                        .scaling = RopeScaling::llama3,
                        .factor = 8.0,
                        .original_context = 8192,
                        .low_freq_factor = 1.0,
                        .high_freq_factor = 4.0};
  const std::vector<float> table = rope_table(rope, 2, {});
  EXPECT_FLOAT_EQ(table[64 + 1], std::sin(1.0F));
  const double slow = 1.0 / std::pow(500000.0, 62.0 / 64.0) / 8.0;
  EXPECT_NEAR(table[64 + 63], slow, slow * 1e-5);
}

TEST(Rope, ProportionalTurnsTheFirstPairs) {
  const RopeConfig rope{.theta = 10000.0,
                        .rotary_dim = 16,
                        .scaling = RopeScaling::proportional,
                        .factor = 2.0,
                        .proportion = 0.25};
  const std::vector<float> table = rope_table(rope, 4, {});
  const float* row = &table[3 * 16];
  EXPECT_FLOAT_EQ(row[1], std::sin(1.5F));
  EXPECT_FLOAT_EQ(row[3], std::sin(1.5F * static_cast<float>(std::pow(10000.0, -2.0 / 16.0))));
  for (int pair = 2; pair < 8; ++pair) {
    EXPECT_EQ(row[2 * pair], 1.0F);
    EXPECT_EQ(row[2 * pair + 1], 0.0F);
  }
}

TEST(Rope, YarnAttentionFactorScalesTheTable) {
  RopeConfig rope{
      .rotary_dim = 16, .scaling = RopeScaling::yarn, .factor = 4.0, .original_context = 16};
  EXPECT_FLOAT_EQ(rope_table(rope, 1, {})[0], 0.1F * std::log(4.0F) + 1.0F);
  rope.mscale = 1.0;
  rope.mscale_all_dim = 1.0;
  EXPECT_FLOAT_EQ(rope_table(rope, 1, {})[0], 1.0F);
  rope.attention_factor = 1.5;
  EXPECT_FLOAT_EQ(rope_table(rope, 1, {})[0], 1.5F);
}

TEST(Rope, FactorsDivideFrequencies) {
  const RopeConfig rope{.rotary_dim = 4};
  const float factors[] = {2.0F, 1.0F};
  EXPECT_FLOAT_EQ(rope_table(rope, 3, factors)[2 * 4 + 1], std::sin(1.0F));
  EXPECT_THROW(rope_table(rope, 3, std::span(factors, 1)), Error);
  const float zero[] = {1.0F, 0.0F};
  EXPECT_THROW(rope_table(rope, 3, zero), Error);
}

TEST(Rope, QueryScaleGrowsByWholeContexts) {
  const std::vector<float> table = query_scale_table(0.1F, 16, 40);
  EXPECT_EQ(table[0], 1.0F);
  EXPECT_EQ(table[15], 1.0F);
  EXPECT_FLOAT_EQ(table[16], 1.0F + 0.1F * std::log(2.0F));
  EXPECT_FLOAT_EQ(table[39], 1.0F + 0.1F * std::log(3.0F));
}

}  // namespace
}  // namespace wisp::model
