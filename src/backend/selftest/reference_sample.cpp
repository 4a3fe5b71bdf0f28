#include "backend/selftest/reference_sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace wisp::backend::selftest {
namespace {

// The numbers of a RowSampling, which may be moved a little.
struct Numbers {
  double top_p = 1.0;
  double least_offset = 0.0;  // from the best logit to the least one that min-p keeps
  double random = 0.0;
};

// Token ids from the best to the worst, of equals the lowest first.
std::vector<uint32_t> sorted_tokens(const std::vector<double>& logits) {
  std::vector<uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  return order;
}

Numbers numbers_of(const RowSampling& sampling) {
  return {.top_p = sampling.top_p,
          .least_offset = std::log(static_cast<double>(sampling.min_p)),
          .random = sampling.random * 0x1p-32};
}

std::vector<double> probabilities(const std::vector<double>& logits, std::vector<uint32_t> order,
                                  const RowSampling& sampling, const Numbers& numbers) {
  const double best = logits[order[0]];
  if (sampling.top_k > 0 && sampling.top_k < order.size()) order.resize(sampling.top_k);
  if (sampling.top_p < 1.0F) {
    double total = 0.0;
    for (const uint32_t i : order) total += std::exp(logits[i] - best);
    double sum = 0.0;
    size_t kept = 0;
    while (kept < order.size() && (kept == 0 || sum < numbers.top_p * total)) {
      sum += std::exp(logits[order[kept++]] - best);
    }
    order.resize(kept);
  }
  std::vector<double> result(logits.size(), 0.0);
  double total = 0.0;
  for (const uint32_t i : order) {
    if (logits[i] < best + numbers.least_offset) continue;
    total += result[i] = std::exp((logits[i] - best) / sampling.temperature);
  }
  for (double& p : result) p /= total;
  return result;
}

uint32_t draw(const std::vector<double>& p, double random) {
  double sum = 0.0;
  uint32_t last = 0;
  for (uint32_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0.0) continue;
    last = i;
    sum += p[i];
    if (sum > random) return i;
  }
  return last;
}

}  // namespace

std::vector<double> sample_probabilities(const std::vector<double>& logits,
                                         const RowSampling& sampling) {
  return probabilities(logits, sorted_tokens(logits), sampling, numbers_of(sampling));
}

std::optional<uint32_t> sample_reference(const std::vector<double>& logits,
                                         const RowSampling& sampling) {
  constexpr double kMargin = 4e-6;
  const std::vector<uint32_t> order = sorted_tokens(logits);
  if (sampling.greedy()) return order[0];
  std::optional<uint32_t> token;
  for (int change = 0; change < 8; ++change) {
    Numbers numbers = numbers_of(sampling);
    numbers.top_p += (change & 1) != 0 ? kMargin : -kMargin;
    numbers.least_offset =
        std::min(0.0, numbers.least_offset + ((change & 2) != 0 ? kMargin : -kMargin));
    numbers.random += (change & 4) != 0 ? kMargin : -kMargin;
    const uint32_t one = draw(probabilities(logits, order, sampling, numbers), numbers.random);
    if (token && *token != one) return std::nullopt;
    token = one;
  }
  return token;
}

}  // namespace wisp::backend::selftest
