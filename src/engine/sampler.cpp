#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "engine/random.h"

namespace wisp::engine {

namespace {

struct Best {
  float logit = 0.0F;
  int32_t token = 0;
};

void penalize(std::vector<float>& logits, std::span<const int32_t> history,
              const SamplingOptions& options) {
  const size_t n = std::min<size_t>(options.repeat_last_n, history.size());
  std::vector<int32_t> recent(history.end() - static_cast<std::ptrdiff_t>(n), history.end());
  std::sort(recent.begin(), recent.end());
  recent.erase(std::unique(recent.begin(), recent.end()), recent.end());
  for (const int32_t token : recent) {
    ensure(token >= 0 && static_cast<size_t>(token) < logits.size(),
           "sample: a token of the history lies outside the vocabulary");
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0.0F ? logit / options.repeat_penalty : logit * options.repeat_penalty;
  }
}

// The lowest of the best tokens.
Best find_best(std::span<const float> logits) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr size_t kLanes = 16;  // independent, so that compilers make vectors of them
  std::array<float, kLanes> best{};
  best.fill(-kInf);
  std::array<uint32_t, kLanes> bad{};
  const auto look_at = [&](size_t lane, float logit) {
    best[lane] = logit > best[lane] ? logit : best[lane];
    bad[lane] |= logit < kInf ? 0U : 1U;  // a NaN too
  };
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) look_at(lane, logits[i + lane]);
  }
  for (; i < logits.size(); ++i) look_at(0, logits[i]);

  if (std::any_of(bad.begin(), bad.end(), [](uint32_t flag) { return flag != 0; })) {
    const auto found =
        std::find_if(logits.begin(), logits.end(), [](float logit) { return !(logit < kInf); });
    fail("sampling: the logit of token {} is {}", found - logits.begin(), *found);
  }
  const float logit = *std::max_element(best.begin(), best.end());
  if (logit == -kInf) fail("sampling: no token of {} has a finite logit", logits.size());
  const auto found = std::find(logits.begin(), logits.end(), logit);
  return {logit, static_cast<int32_t>(found - logits.begin())};
}

}  // namespace

void check(const SamplingOptions& options) {
  if (!(options.temperature >= 0.0F) || std::isinf(options.temperature)) {
    fail("temperature is {}, it must be at least 0", options.temperature);
  }
  if (!(options.top_p >= 0.0F && options.top_p <= 1.0F)) {
    fail("top-p is {}, it must be from 0 to 1", options.top_p);
  }
  if (!(options.min_p >= 0.0F && options.min_p <= 1.0F)) {
    fail("min-p is {}, it must be from 0 to 1", options.min_p);
  }
  if (!(options.repeat_penalty > 0.0F) || std::isinf(options.repeat_penalty)) {
    fail("repeat-penalty is {}, it must be above 0", options.repeat_penalty);
  }
}

backend::RowSampling row_sampling(const SamplingOptions& options, uint32_t position) {
  return {.temperature = options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .random = static_cast<uint32_t>(random_bits(options.seed, position) >> 32)};
}

int32_t sample(std::span<const float> logits, std::span<const int32_t> history, uint32_t position,
               const SamplingOptions& options) {
  std::vector<float> penalized;
  if (options.needs_history()) {
    penalized.assign(logits.begin(), logits.end());
    penalize(penalized, history, options);
    logits = penalized;
  }
  const Best best = find_best(logits);
  const backend::RowSampling sampling = row_sampling(options, position);
  if (sampling.greedy()) return best.token;
  return static_cast<int32_t>(backend::sample(logits, best.logit, sampling));
}

}  // namespace wisp::engine
