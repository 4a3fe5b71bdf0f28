// Pearson's test of counts against probabilities.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace wisp::backend::selftest {

// Empty, or what is wrong: a count where the probability is 0, or a chi-square over the outcomes
// expected 8 times and more (the rest is one) beyond d + 4 sqrt(2 d) + 10 for d degrees of freedom,
// where chance alone is once in 10^4 times and more.
inline std::string chi_square_fault(const std::vector<uint32_t>& counts,
                                    const std::vector<double>& probabilities) {
  const double draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double chi_square = 0.0;
  double rest = draws;
  double rest_expected = draws;
  int outcomes = 0;
  const auto add = [&](double count, double expected) {
    chi_square += (count - expected) * (count - expected) / expected;
    ++outcomes;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = draws * probabilities[i];
    if (counts[i] > 0 && expected == 0.0) return fmt::format("{} came, which must not", i);
    if (expected < 8.0) continue;
    add(counts[i], expected);
    rest -= counts[i];
    rest_expected -= expected;
  }
  if (rest_expected >= 8.0) add(rest, rest_expected);
  const int degrees = outcomes - 1;
  const double most = degrees + 4.0 * std::sqrt(2.0 * degrees) + 10.0;
  if (chi_square <= most) return "";
  return fmt::format("chi-square {:.1f} for {} degrees, at most {:.1f}", chi_square, degrees, most);
}

}  // namespace wisp::backend::selftest
