#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/random.h"

namespace wisp::engine {

namespace {

struct Candidate {
  float logit = 0.0F;
  int32_t token = 0;
};

// The order of every choice: by logit, of equals the lowest id first.
bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

bool by_token(const Candidate& a, const Candidate& b) { return a.token < b.token; }

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

// The best token. A token of -inf is never chosen.
Candidate find_best(std::span<const float> logits) {
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

// The `count` best of the finite logits, best first. One pass, which keeps up to 2 * count and
// knows what the worst of them must beat.
std::vector<Candidate> take_best(std::span<const float> logits, size_t count) {
  const size_t capacity = std::max<size_t>(2 * count, 64);
  std::vector<Candidate> kept;
  kept.reserve(std::min(capacity, logits.size()));
  float floor = std::numeric_limits<float>::lowest();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] < floor) continue;
    kept.push_back({logits[i], static_cast<int32_t>(i)});
    if (kept.size() < capacity) continue;
    const auto last = kept.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::nth_element(kept.begin(), last, kept.end(), better);
    floor = last->logit;
    kept.resize(count);
  }
  std::sort(kept.begin(), kept.end(), better);
  if (kept.size() > count) kept.resize(count);
  return kept;
}

double weight(float logit, float best, double temperature) {
  return std::exp((static_cast<double>(logit) - static_cast<double>(best)) / temperature);
}

// How many of the sorted candidates it takes until their share of `total` reaches top_p; nullopt
// when all of them do not.
std::optional<size_t> count_top_p(const std::vector<Candidate>& sorted, double total, float top_p) {
  double sum = 0.0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    sum += weight(sorted[i].logit, sorted[0].logit, 1.0);
    if (sum >= static_cast<double>(top_p) * total) return i + 1;
  }
  return std::nullopt;
}

// Top-p over the whole vocabulary: the probabilities are summed by distance from the best logit, so
// that only the few tokens near it have to be sorted.
std::vector<Candidate> take_top_p(std::span<const float> logits, float best, float top_p) {
  constexpr size_t kBins = 512;
  const auto bin_of = [best](float logit) {
    return static_cast<size_t>(std::min((best - logit) * 16.0F, static_cast<float>(kBins - 1)));
  };
  std::array<double, kBins> mass{};
  for (const float logit : logits) mass[bin_of(logit)] += weight(logit, best, 1.0);
  const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
  double sum = 0.0;
  std::vector<Candidate> kept;
  for (size_t bin = 0; bin < kBins; ++bin) {
    sum += mass[bin];
    if (sum < static_cast<double>(top_p) * total && bin + 1 < kBins) continue;
    kept.clear();
    for (size_t i = 0; i < logits.size(); ++i) {
      if (bin_of(logits[i]) <= bin) kept.push_back({logits[i], static_cast<int32_t>(i)});
    }
    std::sort(kept.begin(), kept.end(), better);
    // Sums in another order may miss by a rounding error: then the next bin has the last token.
    if (const auto count = count_top_p(kept, total, top_p)) {
      kept.resize(*count);
      break;
    }
  }
  return kept;
}

// Top-k and top-p leave the best tokens, a prefix of their sorted order. nullopt: both are off.
std::optional<std::vector<Candidate>> truncate(std::span<const float> logits, float best,
                                               const SamplingOptions& options) {
  const bool has_top_k = options.top_k > 0 && options.top_k < logits.size();
  const bool has_top_p = options.top_p < 1.0F;
  if (!has_top_k && !has_top_p) return std::nullopt;
  if (!has_top_k) return take_top_p(logits, best, options.top_p);
  std::vector<Candidate> kept = take_best(logits, options.top_k);
  if (has_top_p) {
    double total = 0.0;
    for (const Candidate& candidate : kept) total += weight(candidate.logit, best, 1.0);
    kept.resize(count_top_p(kept, total, options.top_p).value_or(kept.size()));
  }
  return kept;
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

int32_t sample(std::span<const float> logits, std::span<const int32_t> history, uint32_t position,
               const SamplingOptions& options) {
  std::vector<float> penalized;
  if (options.repeat_penalty != 1.0F) {
    penalized.assign(logits.begin(), logits.end());
    penalize(penalized, history, options);
    logits = penalized;
  }
  const Candidate best = find_best(logits);
  if (options.temperature <= 0.0F) return best.token;

  // All three cuts leave a prefix of the sorted order. min-p compares with the best probability,
  // which in logits is a floor below the best.
  const float floor = options.min_p > 0.0F ? best.logit + std::log(options.min_p)
                                           : std::numeric_limits<float>::lowest();
  std::vector<Candidate> kept;
  if (auto truncated = truncate(logits, best.logit, options)) {
    kept = *std::move(truncated);
    std::erase_if(kept, [floor](const Candidate& candidate) { return candidate.logit < floor; });
    std::sort(kept.begin(), kept.end(), by_token);
  } else {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] >= floor) kept.push_back({logits[i], static_cast<int32_t>(i)});
    }
  }

  // The draw walks in order of ids, so cuts that cut nothing change nothing.
  double total = 0.0;
  std::vector<double> ends(kept.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    total += weight(kept[i].logit, best.logit, options.temperature);
    ends[i] = total;
  }
  const double drawn = random_unit(options.seed, position) * total;
  const auto end = std::upper_bound(ends.begin(), ends.end(), drawn);
  const size_t chosen = std::min<size_t>(static_cast<size_t>(end - ends.begin()), kept.size() - 1);
  return kept[chosen].token;
}

}  // namespace wisp::engine
