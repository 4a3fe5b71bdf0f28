#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.h"
#include "engine/random.h"

namespace wisp::engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(uint64_t seed, size_t count) {
  std::vector<float> logits(count);
  for (size_t i = 0; i < count; ++i) {
    logits[i] = static_cast<float>(random_unit(seed, i) * 16.0 - 8.0);
  }
  return logits;
}

// The tokens that came up in `draws` draws, with their counts.
std::vector<int> histogram(const std::vector<float>& logits, const SamplingOptions& options,
                           uint32_t draws, const std::vector<int32_t>& history = {}) {
  std::vector<int> counts(logits.size(), 0);
  for (uint32_t position = 0; position < draws; ++position) {
    ++counts[static_cast<size_t>(sample(logits, history, position, options))];
  }
  return counts;
}

std::vector<size_t> support(const std::vector<int>& counts) {
  std::vector<size_t> tokens;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) tokens.push_back(i);
  }
  return tokens;
}

using Tokens = std::vector<size_t>;

// What the cuts leave, by a full sort in the order that sampler.h gives; probabilities by token.
std::vector<double> reference(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  const double best = logits[order[0]];
  if (options.top_k > 0 && options.top_k < order.size()) order.resize(options.top_k);
  double total = 0.0;
  for (const size_t i : order) total += std::exp(logits[i] - best);
  double sum = 0.0;
  size_t kept = 0;
  while (kept < order.size() && (kept == 0 || sum < options.top_p * total)) {
    sum += std::exp(logits[order[kept++]] - best);
  }
  order.resize(kept);
  std::vector<double> result(logits.size(), 0.0);
  double mass = 0.0;
  for (const size_t i : order) {
    if (std::exp(logits[i] - best) < options.min_p) continue;
    result[i] = std::exp((logits[i] - best) / options.temperature);
    mass += result[i];
  }
  for (double& p : result) p /= mass;
  return result;
}

TEST(Sampler, GreedyTakesTheLowestOfEquals) {
  EXPECT_EQ(sample(std::vector<float>{1, 3, 2, 3}, {}, 0, {}), 1);
  EXPECT_EQ(sample(std::vector<float>{-5}, {}, 0, {}), 0);
  std::vector<float> large(262'144, 0.5F);
  EXPECT_EQ(sample(large, {}, 0, {}), 0);
  large[200'000] = large[200'001] = 0.75F;
  EXPECT_EQ(sample(large, {}, 0, {}), 200'000);
}

TEST(Sampler, PenaltyAlsoAtTemperatureZero) {
  const std::vector<float> logits = {2.0F, 1.5F, -1.0F, 1.0F};
  const std::vector<int32_t> history = {3, 0, 1};
  SamplingOptions options{.repeat_penalty = 2.0F};
  EXPECT_TRUE(options.needs_history());
  EXPECT_EQ(sample(logits, history, 0, options), 0);  // 1, 0.75, -1, 0.5
  options.repeat_last_n = 1;
  EXPECT_EQ(sample(logits, std::vector<int32_t>{1, 0}, 0, options), 1);
  options.repeat_last_n = 0;
  EXPECT_EQ(sample(logits, history, 0, options), 0);
  options.repeat_last_n = 64;
  // A negative logit falls; a token counts once however often it came.
  EXPECT_EQ(sample(std::vector<float>{-1.0F, -1.5F}, std::vector<int32_t>{0}, 0, options), 1);
  EXPECT_EQ(sample(std::vector<float>{4.0F, 1.5F}, std::vector<int32_t>{0, 0, 0}, 0, options), 0);
}

TEST(Sampler, FrequenciesFollowTheReference) {
  const std::vector<float> logits = {1.0F, 0.0F, 2.0F, -1.0F, 2.0F, 0.5F, -30.0F, 1.5F};
  const std::vector<SamplingOptions> cases = {
      {.temperature = 1.0F, .seed = 1},
      {.temperature = 0.5F, .seed = 2},
      {.temperature = 2.0F, .top_k = 3, .seed = 3},
      {.temperature = 1.0F, .top_p = 0.7F, .seed = 4},
      {.temperature = 1.3F, .min_p = 0.3F, .seed = 5},
      {.temperature = 0.9F, .top_k = 6, .top_p = 0.9F, .min_p = 0.25F, .seed = 6},
  };
  constexpr uint32_t kDraws = 40'000;
  for (const SamplingOptions& options : cases) {
    const auto expected = reference(logits, options);
    const auto counts = histogram(logits, options, kDraws);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double sigma = std::sqrt(kDraws * expected[i] * (1 - expected[i]));
      EXPECT_NEAR(counts[i], kDraws * expected[i], 4.5 * sigma + 1e-6)
          << "seed " << options.seed << " token " << i;
    }
  }
}

TEST(Sampler, CutsAreExact) {
  // Probabilities 0.5, 0.25, 0.125, 0.125.
  const std::vector<float> logits = {std::log(1.0F), std::log(4.0F), std::log(1.0F),
                                     std::log(2.0F)};
  const auto tokens = [&](SamplingOptions options) {
    options.temperature = 1.0F;
    return support(histogram(logits, options, 2000));
  };
  EXPECT_EQ(tokens({}), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(tokens({.top_k = 1}), (Tokens{1}));
  EXPECT_EQ(tokens({.top_k = 3}), (Tokens{0, 1, 3}));  // of equals the lowest id
  EXPECT_EQ(tokens({.top_k = 4}), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(tokens({.top_k = 1000}), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(tokens({.top_p = 0.0F}), (Tokens{1}));
  EXPECT_EQ(tokens({.top_p = 0.49F}), (Tokens{1}));
  EXPECT_EQ(tokens({.top_p = 0.51F}), (Tokens{1, 3}));
  EXPECT_EQ(tokens({.top_p = 0.76F}), (Tokens{0, 1, 3}));
  EXPECT_EQ(tokens({.top_k = 2, .top_p = 0.6F}), (Tokens{1}));  // two thirds of what top-k left
  EXPECT_EQ(tokens({.min_p = 0.26F}), (Tokens{1, 3}));
  EXPECT_EQ(tokens({.min_p = 0.24F}), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(tokens({.min_p = 1.0F}), (Tokens{1}));
}

// Over many shapes of a large vocabulary the draw equals that from fully sorted candidates.
TEST(Sampler, LargeVocabulariesAgreeWithASort) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const size_t vocab = 1000 + seed * 5000;
    std::vector<float> logits = random_logits(seed, vocab);
    if (seed % 2 == 0) {
      for (float& logit : logits) logit = std::round(logit);  // thousands of ties
    }
    if (seed % 3 == 0) std::sort(logits.begin(), logits.end());  // the best come last
    SamplingOptions options{.temperature = 0.7F, .seed = seed};
    if (seed % 4 != 1) options.top_k = static_cast<uint32_t>(1 + random_bits(seed, 1) % 900);
    if (seed % 4 != 2) options.top_p = 0.95F;
    const auto expected = reference(logits, options);
    for (uint32_t position = 0; position < 60; ++position) {
      const int32_t token = sample(logits, {}, position, options);
      double sum = 0.0;
      const double drawn = random_unit(seed, position);
      int32_t want = 0;
      for (size_t i = 0; i < vocab; ++i) {
        sum += expected[i];
        if (sum > drawn) {
          want = static_cast<int32_t>(i);
          break;
        }
      }
      ASSERT_EQ(token, want) << "seed " << seed << " position " << position;
    }
  }
}

TEST(Sampler, CutsThatCutNothingChangeNothing) {
  const auto logits = random_logits(3, 500);
  for (uint32_t position = 0; position < 200; ++position) {
    const SamplingOptions plain{.temperature = 1.0F, .seed = 9};
    SamplingOptions all = plain;
    all.top_k = 499;
    all.top_p = 0.9999999F;
    SamplingOptions none = plain;
    none.top_k = 500;
    none.min_p = 1e-30F;
    const int32_t token = sample(logits, {}, position, plain);
    EXPECT_EQ(sample(logits, {}, position, none), token);
    EXPECT_EQ(sample(logits, {}, position, all), token);
  }
}

TEST(Sampler, DrawsDependOnSeedAndPositionAlone) {
  const std::vector<float> logits(1000, 0.0F);
  SamplingOptions options{.temperature = 1.0F, .seed = 1};
  const auto run = [&] {
    std::vector<int32_t> tokens;
    for (uint32_t position = 0; position < 100; ++position) {
      tokens.push_back(sample(logits, {}, position, options));
    }
    return tokens;
  };
  const auto first = run();
  EXPECT_EQ(run(), first);
  EXPECT_GT(std::set<int32_t>(first.begin(), first.end()).size(), 80U);
  options.seed = 2;
  const auto second = run();
  EXPECT_NE(second, first);
  int equal = 0;  // neighbouring seeds are not shifted streams
  for (size_t i = 0; i + 1 < first.size(); ++i) equal += first[i + 1] == second[i] ? 1 : 0;
  EXPECT_LT(equal, 10);
}

TEST(Sampler, RandomNumbersAreUniform) {
  double sum = 0.0;
  double squares = 0.0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const double u = random_unit(7, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.004);
  EXPECT_NEAR(squares / 100'000, 1.0 / 3.0, 0.004);
}

TEST(Sampler, ExtremeTemperatures) {
  const std::vector<float> logits = {-1e30F, 5.0F, 1e30F, 4.0F};
  EXPECT_EQ(sample(logits, {}, 3, {.temperature = 1e-30F}), 2);
  const auto flat = histogram(std::vector<float>{0, 1, 2, 3}, {.temperature = 1e30F}, 4000);
  for (const int count : flat) EXPECT_NEAR(count, 1000, 150);
}

std::string error_of(const std::vector<float>& logits, const SamplingOptions& options) {
  try {
    sample(logits, {}, 0, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sampler, NamesBadLogits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingOptions options{.temperature = temperature};
    EXPECT_EQ(error_of({1, nan, 2}, options), "sampling: the logit of token 1 is nan");
    EXPECT_EQ(error_of({1, 2, kInf}, options), "sampling: the logit of token 2 is inf");
    EXPECT_EQ(error_of({-kInf, -kInf}, options), "sampling: no token of 2 has a finite logit");
    EXPECT_EQ(error_of({}, options), "sampling: no token of 0 has a finite logit");
    EXPECT_EQ(sample(std::vector<float>{-kInf, 0.0F}, {}, 0, options), 1);  // a masked token
  }
  const std::vector<float> masked = {-kInf, 1.0F, -kInf, 0.0F};
  for (const SamplingOptions& options : {SamplingOptions{.temperature = 1.0F, .top_k = 3},
                                         SamplingOptions{.temperature = 1.0F, .top_p = 0.9999F}}) {
    EXPECT_EQ(support(histogram(masked, options, 300)), (Tokens{1, 3}));
  }
}

TEST(Sampler, OptionsHaveRanges) {
  const auto error = [](const SamplingOptions& options) -> std::string {
    try {
      check(options);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error({}), "no error");
  EXPECT_EQ(error({.temperature = 2.0F, .top_k = 40, .top_p = 0.0F, .min_p = 1.0F}), "no error");
  EXPECT_EQ(error({.temperature = -1.0F}), "temperature is -1, it must be at least 0");
  EXPECT_EQ(error({.temperature = kInf}), "temperature is inf, it must be at least 0");
  EXPECT_EQ(error({.temperature = nan}), "temperature is nan, it must be at least 0");
  EXPECT_EQ(error({.top_p = 1.5F}), "top-p is 1.5, it must be from 0 to 1");
  EXPECT_EQ(error({.top_p = nan}), "top-p is nan, it must be from 0 to 1");
  EXPECT_EQ(error({.min_p = -0.5F}), "min-p is -0.5, it must be from 0 to 1");
  EXPECT_EQ(error({.repeat_penalty = 0.0F}), "repeat-penalty is 0, it must be above 0");
}

}  // namespace
}  // namespace wisp::engine
