#include "backend/selftest/reference_route.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace wisp::backend::selftest {
namespace {

// 0, 1, ... n - 1, those with larger values first, equal ones in their order.
std::vector<size_t> ranking(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return values[i]; });
  return order;
}

std::vector<double> scores(plan::RouterScore kind, const std::vector<double>& logits) {
  std::vector<double> result;
  result.reserve(logits.size());
  for (const double logit : logits) {
    result.push_back(kind == plan::RouterScore::sigmoid ? 1.0 / (1.0 + std::exp(-logit))
                                                        : std::exp(logit));
  }
  if (kind == plan::RouterScore::sigmoid) return result;
  const double sum = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& score : result) score /= sum;
  return result;
}

}  // namespace

std::vector<double> route_reference(const plan::Route& op, const std::vector<double>& logits,
                                    const std::vector<double>& bias) {
  const std::vector<double> score = scores(op.score, logits);
  std::vector<double> choice = score;
  for (size_t e = 0; e < bias.size(); ++e) choice[e] += bias[e];
  const size_t size = choice.size() / op.num_groups;
  std::vector<double> groups;
  for (size_t g = 0; g < op.num_groups; ++g) {
    std::vector<double> own(choice.begin() + static_cast<ptrdiff_t>(g * size),
                            choice.begin() + static_cast<ptrdiff_t>((g + 1) * size));
    std::ranges::sort(own, std::greater<>());
    const bool two = op.group_score == plan::GroupScore::best_two && size > 1;
    groups.push_back(two ? own[0] + own[1] : own[0]);
  }
  const std::vector<size_t> best_groups = ranking(groups);
  std::vector<bool> kept(op.num_groups, false);
  for (size_t i = 0; i < op.top_groups; ++i) kept[best_groups[i]] = true;
  std::vector<double> result(size_t{2} * op.top_k);
  double sum = 0.0;
  size_t s = 0;
  for (const size_t e : ranking(choice)) {
    if (s == op.top_k) break;
    if (!kept[e / size]) continue;
    result[s] = static_cast<double>(e);
    result[op.top_k + s] = score[e];
    sum += score[e];
    ++s;
  }
  for (s = op.top_k; s < result.size(); ++s) {
    result[s] *= op.normalise ? op.scale / sum : op.scale;
  }
  return result;
}

}  // namespace wisp::backend::selftest
