#include "backend/selftest/reference_recurrent.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace wisp::backend::selftest {

double activate_reference(plan::Activation activation, double x) {
  switch (activation) {
    case plan::Activation::silu:
      return x / (1.0 + std::exp(-x));
    case plan::Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case plan::Activation::gelu_erf:
      return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
    case plan::Activation::relu:
      return std::max(x, 0.0);
    case plan::Activation::relu_squared:
      return std::max(x, 0.0) * std::max(x, 0.0);
    case plan::Activation::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
  }
  fail("unknown activation");
}

Matrix conv_reference(const plan::Conv& op, std::span<const Column> columns, const Matrix& x,
                      const Matrix& weight, const std::vector<double>* bias, Matrix& states) {
  const size_t channels = weight[0].size();
  Matrix out;
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<double>& state = states[columns[c].slot];
    if (columns[c].position == 0) std::fill(state.begin(), state.end(), 0.0);
    // The inputs of all taps: those kept, and the column's own.
    for (size_t i = 0; i < channels; ++i) {
      state.push_back(x[c][op.x_offset + i] * (op.in_gate ? x[c][*op.in_gate + i] : 1.0));
    }
    std::vector<double>& row = out.emplace_back(channels);
    for (size_t i = 0; i < channels; ++i) {
      double sum = bias == nullptr ? 0.0 : (*bias)[i];
      for (size_t j = 0; j < weight.size(); ++j) sum += weight[j][i] * state[j * channels + i];
      if (op.activation) sum = activate_reference(*op.activation, sum);
      row[i] = sum * (op.out_gate ? x[c][*op.out_gate + i] : 1.0);
    }
    state.erase(state.begin(), state.begin() + static_cast<ptrdiff_t>(channels));
  }
  return out;
}

}  // namespace wisp::backend::selftest
