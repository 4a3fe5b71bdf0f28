// Masses and draws on the host against double precision. The kernels are held to the same tokens in
// gpu_sampling_test.cpp.
#include "backend/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/selftest/op_case.h"
#include "backend/selftest/reference_sample.h"
#include "chi_square.h"

namespace wisp::backend::selftest {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

uint32_t sample_best_of(const std::vector<float>& logits, const RowSampling& sampling) {
  return sample(logits, *std::ranges::max_element(logits), sampling);
}

// The bound that sampling.h states.
TEST(Sampling, MassesAreNearTheExponential) {
  Random random(1);
  for (const float temperature : {0.05F, 0.3F, 0.7F, 1.0F, 1.7F, 20.0F, 1e30F}) {
    const MassScale scale = mass_scale(temperature);
    for (const float best : {0.0F, 17.25F, -3.1F, 1e4F, -2e30F}) {
      EXPECT_EQ(mass(best, best, scale), 0x80000000U);
      for (const float offset : random_floats(random, 2000, 25.0F)) {
        const float logit = best - std::fabs(offset) * temperature;
        const double distance =
            (static_cast<double>(best) - static_cast<double>(logit)) / temperature;
        const double exact = std::exp(-distance) * 0x1p31;
        const double bound = 0.5 + 2e-7 * (1.0 + distance) * exact;
        ASSERT_NEAR(mass(best, logit, scale), exact, bound) << best << " " << logit;
      }
      EXPECT_EQ(mass(best, -kInf, scale), 0U);
    }
  }
}

TEST(Sampling, MassesEndAtAThirtySecondPower) {
  const MassScale scale = mass_scale(1.0F);
  EXPECT_EQ(mass(0.0F, -22.1F, scale), 1U);  // e^-22.1 = 2^-31.9
  EXPECT_EQ(mass(0.0F, -22.2F, scale), 0U);  // 2^-32.03
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(mass(most, -most, scale), 0U);
  EXPECT_NEAR(mass(most, -most, mass_scale(most)), std::exp(-2.0) * 0x1p31, 100.0);
  EXPECT_EQ(mass(1.0F, std::nextafter(1.0F, 0.0F), mass_scale(0x1p-100F)), 0U);
}

TEST(Sampling, SharesRoundUp) {
  EXPECT_EQ(top_p_share(0.0F), 0U);
  EXPECT_EQ(top_p_share(0.5F), 0x80000000U);
  EXPECT_EQ(top_p_share(std::nextafter(1.0F, 0.0F)), 0xffffff00U);
  EXPECT_EQ(share_of(1000, 0), 1U);
  EXPECT_EQ(share_of(1000, 0x80000000U), 500U);
  EXPECT_EQ(share_of(1001, 0x80000000U), 501U);
  EXPECT_EQ(share_of(1, 1), 1U);
  EXPECT_EQ(share_of(0x7fffffffffffffffU, 0xffffffffU), 0x7fffffff7fffffffU + 1U);
}

RowSampling random_sampling(Random& random, uint32_t vocab) {
  RowSampling sampling{.temperature = 0.1F * static_cast<float>(1 + random() % 20)};
  if (random() % 2 == 0) sampling.top_k = 1 + random() % (2 * vocab);
  if (random() % 2 == 0) sampling.top_p = static_cast<float>(random() % 1000) / 1000.0F;
  if (random() % 3 == 0) sampling.min_p = static_cast<float>(random() % 100) / 100.0F;
  sampling.random = static_cast<uint32_t>(random());
  return sampling;
}

TEST(Sampling, TokensAreThoseOfASort) {
  Random random(2);
  int certain = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const auto vocab = static_cast<uint32_t>(1 + random() % 400);
    std::vector<float> logits = random_floats(random, vocab, 6.0F);
    if (trial % 3 == 0) {
      for (float& logit : logits) logit = std::round(logit);
    }
    const RowSampling sampling = random_sampling(random, vocab);
    const auto expected = sample_reference({logits.begin(), logits.end()}, sampling);
    if (!expected) continue;
    ++certain;
    ASSERT_EQ(sample_best_of(logits, sampling), *expected) << "trial " << trial;
  }
  EXPECT_GT(certain, 1400);
}

TEST(Sampling, FrequenciesFollowTheProbabilities) {
  Random random(3);
  const std::vector<RowSampling> ways = {
      {.temperature = 1.0F},
      {.temperature = 0.6F, .top_p = 0.9F},
      {.temperature = 1.5F, .top_k = 40},
      {.temperature = 0.8F, .top_k = 100, .top_p = 0.95F, .min_p = 0.02F},
      {.temperature = 3.0F, .min_p = 0.05F},
  };
  constexpr uint32_t kDraws = 100'000;
  for (const RowSampling& way : ways) {
    const std::vector<float> logits = random_floats(random, 200, 6.0F);
    const std::vector<double> p = sample_probabilities({logits.begin(), logits.end()}, way);
    std::vector<uint32_t> counts(logits.size(), 0);
    for (uint32_t i = 0; i < kDraws; ++i) {
      RowSampling one = way;
      one.random = static_cast<uint32_t>(random());
      ++counts[sample_best_of(logits, one)];
    }
    EXPECT_EQ(chi_square_fault(counts, p), "") << way.temperature;
  }
}

}  // namespace
}  // namespace wisp::backend::selftest
