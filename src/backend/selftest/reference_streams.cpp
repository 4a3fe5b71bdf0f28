#include "backend/selftest/reference_streams.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace wisp::backend::selftest {
namespace {

double mean_square(std::span<const double> x, double center) {
  double sum = 0.0;
  for (const double v : x) sum += (v - center) * (v - center);
  return sum / static_cast<double>(x.size());
}

// All streams of a row, one after another.
std::vector<double> joined(const std::vector<double>& first, const std::vector<double>& rest) {
  std::vector<double> all = first;
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

void append(StreamRows& rows, const std::vector<double>& all, size_t width) {
  const auto middle = all.begin() + static_cast<ptrdiff_t>(width);
  rows.first.emplace_back(all.begin(), middle);
  rows.rest.emplace_back(middle, all.end());
}

}  // namespace

Matrix stream_match_reference(const plan::StreamMatch& op, const Matrix& first,
                              const Matrix& rest) {
  Matrix out;
  for (size_t r = 0; r < first.size(); ++r) {
    const size_t width = first[r].size();
    const double target = std::sqrt(mean_square(first[r], 0.0));
    std::vector<double> matched = rest[r];
    std::vector<double> mean = first[r];
    for (size_t i = 0; i < matched.size(); ++i) {
      const std::span<const double> own = std::span(rest[r]).subspan(i / width * width, width);
      matched[i] *= target / std::sqrt(std::max<double>(mean_square(own, 0.0), op.floor));
      mean[i % width] += matched[i];
    }
    const size_t count = 1 + matched.size() / width;
    for (double& v : mean) v /= static_cast<double>(count);
    out.push_back(op.mean ? mean : matched);
  }
  return out;
}

StreamRows stream_predict_reference(const Matrix& first, const Matrix& rest, const Matrix& coefs) {
  StreamRows result;
  for (size_t r = 0; r < first.size(); ++r) {
    const size_t width = first[r].size();
    const std::vector<double> all = joined(first[r], rest[r]);
    const size_t count = all.size() / width;
    std::vector<double> out = all;
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t p = 0; p < count; ++p) {
        out[i] += coefs[r][i / width * count + p] * all[p * width + i % width];
      }
    }
    append(result, out, width);
  }
  return result;
}

StreamRows stream_correct_reference(const Matrix& first, const Matrix& rest, const Matrix& y,
                                    const Matrix& coefs) {
  StreamRows result;
  for (size_t r = 0; r < first.size(); ++r) {
    const size_t width = first[r].size();
    std::vector<double> out = joined(first[r], rest[r]);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] += (1.0 + coefs[r][i / width]) * (y[r][i % width] - first[r][i % width]);
    }
    append(result, out, width);
  }
  return result;
}

double cutoff_reference(double cutoff, std::span<const double> gates) {
  const double mean =
      std::accumulate(gates.begin(), gates.end(), 0.0) / static_cast<double>(gates.size());
  return mean + cutoff * std::sqrt(mean_square(gates, mean));
}

}  // namespace wisp::backend::selftest
