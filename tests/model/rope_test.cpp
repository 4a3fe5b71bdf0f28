#include "model/rope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
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

RopeConfig mrope(std::vector<uint32_t> sections, bool interleaved) {
  return {.theta = 1e7,
          .rotary_dim = 64,
          .sections = std::move(sections),
          .interleaved_sections = interleaved};
}

TEST(Mrope, AxesTakeTurnsOrLieInChunks) {
  const std::vector<uint8_t> turns = rope_axes(mrope({11, 11, 10}, true));
  ASSERT_EQ(turns.size(), 32U);
  for (size_t i = 0; i < turns.size(); ++i) EXPECT_EQ(turns[i], i % 3) << i;
  const std::vector<uint8_t> chunks = rope_axes(mrope({8, 12, 12}, false));
  for (size_t i = 0; i < chunks.size(); ++i) EXPECT_EQ(chunks[i], i < 8 ? 0 : i < 20 ? 1 : 2) << i;
  // What the turns of an axis leave is time's.
  const std::vector<uint8_t> few = rope_axes(mrope({24, 4, 4}, true));
  EXPECT_EQ(std::ranges::count(few, 0), 24);
  EXPECT_EQ(few[10], 1);
  EXPECT_EQ(few[13], 0);
  EXPECT_EQ(rope_axes(mrope({}, false)), std::vector<uint8_t>(32, 0));
}

TEST(Mrope, EqualAxesHaveTheBitsOfThePlainTable) {
  for (const bool interleaved : {true, false}) {
    RopeConfig rope = mrope({11, 11, 10}, interleaved);
    rope.scaling = RopeScaling::yarn;
    rope.factor = 4.0;
    rope.original_context = 4096;
    const std::vector<float> table = rope_table(rope, 16384, {});
    for (const uint32_t p : {0U, 1U, 7U, 63U, 1024U, 4095U, 16383U}) {
      const RopePosition position[] = {{p, p, p}};
      const std::vector<float> row = rope_rows(rope, position, {});
      for (size_t i = 0; i < 64; ++i) {
        EXPECT_EQ(std::bit_cast<uint32_t>(row[i]), std::bit_cast<uint32_t>(table[p * 64 + i])) << p;
      }
    }
  }
}

TEST(Mrope, PairsFollowTheirAxis) {
  const RopeConfig rope = mrope({11, 11, 10}, true);
  const RopePosition positions[] = {{40, 41, 42}, {40, 40, 40}, {41, 41, 41}, {42, 42, 42}};
  const std::vector<float> rows = rope_rows(rope, positions, {});
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(rows[i], rows[(1 + i / 2 % 3) * 64 + i]) << i;
  EXPECT_NE(rows[2], rows[64 + 2]);
  EXPECT_NE(rows[4], rows[64 + 4]);
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
