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

namespace {

double softplus(double v) { return std::max(v, 0.0) + std::log1p(std::exp(-std::fabs(v))); }

// x / sqrt(sum of squares + 1e-6) * scale.
std::vector<double> unit(const double* x, size_t n, double scale) {
  double squares = 1e-6;
  for (size_t i = 0; i < n; ++i) squares += x[i] * x[i];
  std::vector<double> result(x, x + n);
  for (double& v : result) v *= scale / std::sqrt(squares);
  return result;
}

// One head's step of a column; S is [key_dim, value_dim].
void delta_step(std::span<const double> q, std::span<const double> k, std::span<const double> v,
                double decay, double beta, double* s, double* out) {
  for (size_t j = 0; j < v.size(); ++j) {
    double known = 0.0;
    for (size_t i = 0; i < k.size(); ++i) {
      s[i * v.size() + j] *= decay;
      known += k[i] * s[i * v.size() + j];
    }
    const double delta = beta * (v[j] - known);
    out[j] = 0.0;
    for (size_t i = 0; i < k.size(); ++i) {
      s[i * v.size() + j] += k[i] * delta;
      out[j] += q[i] * s[i * v.size() + j];
    }
  }
}

}  // namespace

Matrix delta_net_reference(const plan::DeltaNet& op, std::span<const Column> columns,
                           const Matrix& x, const Matrix& gates, const std::vector<double>& rate,
                           const std::vector<double>& dt_bias, Matrix& states) {
  const size_t keys = size_t{op.num_key_heads} * op.key_dim;
  Matrix out;
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<double>& state = states[columns[c].slot];
    if (columns[c].position == 0) std::fill(state.begin(), state.end(), 0.0);
    std::vector<double>& row = out.emplace_back(size_t{op.num_heads} * op.value_dim);
    for (uint32_t h = 0; h < op.num_heads; ++h) {
      const size_t key = size_t{op.key_head(h)} * op.key_dim;
      const auto q = unit(&x[c][key], op.key_dim, 1.0 / std::sqrt(op.key_dim));
      const auto k = unit(&x[c][keys + key], op.key_dim, 1.0);
      const std::span v(&x[c][2 * keys + h * op.value_dim], op.value_dim);
      const double b = gates[c][op.gates_offset + h];
      const double a = gates[c][op.gates_offset + op.num_heads + h] + dt_bias[h];
      delta_step(q, k, v, std::exp(rate[h] * softplus(a)), 1.0 / (1.0 + std::exp(-b)),
                 &state[h * op.key_dim * op.value_dim], &row[h * op.value_dim]);
    }
  }
  return out;
}

Matrix scan_reference(const plan::Scan& op, std::span<const Column> columns, uint32_t channels,
                      const ScanInputs& in, Matrix& states) {
  const uint32_t share = channels / op.num_heads;
  Matrix out;
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<double>& state = states[columns[c].slot];
    if (columns[c].position == 0) std::fill(state.begin(), state.end(), 0.0);
    std::vector<double>& row = out.emplace_back(channels);
    for (uint32_t i = 0; i < channels; ++i) {
      const uint32_t head = i / share;
      const uint32_t group = head / (op.num_heads / op.num_groups) * op.state_size;
      const double dt = std::clamp<double>(
          softplus(in.dt[c][op.dt_offset + head] + in.dt_bias[head]), op.dt_min, op.dt_max);
      row[i] = in.skip[head] * in.x[c][i];
      for (uint32_t n = 0; n < op.state_size; ++n) {
        const double rate = in.rate[head][in.rate[head].size() == 1 ? 0 : n];
        double& h = state[i * op.state_size + n];
        h = std::exp(dt * rate) * h + dt * in.x[c][i] * in.bc[c][op.b_offset + group + n];
        row[i] += in.bc[c][op.c_offset + group + n] * h;
      }
    }
  }
  return out;
}

Matrix wkv_reference(std::span<const Column> columns, const Matrix& k, const Matrix& v,
                     const std::vector<double>& rate, const std::vector<double>& first,
                     Matrix& states) {
  const size_t channels = rate.size();
  Matrix out;
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<double>& state = states[columns[c].slot];
    if (columns[c].position == 0) {
      std::fill(state.begin(), state.end(), 0.0);
      std::fill_n(state.begin() + static_cast<ptrdiff_t>(2 * channels), channels, -HUGE_VAL);
    }
    std::vector<double>& row = out.emplace_back(channels);
    for (size_t i = 0; i < channels; ++i) {
      double& a = state[i];
      double& b = state[channels + i];
      double& p = state[2 * channels + i];
      const double now = std::max(p, first[i] + k[c][i]);
      const double old = std::exp(p - now);
      const double own = std::exp(first[i] + k[c][i] - now);
      row[i] = (old * a + own * v[c][i]) / (old * b + own);
      const double next = std::max(p + rate[i], k[c][i]);
      const double keep = std::exp(p + rate[i] - next);
      const double add = std::exp(k[c][i] - next);
      a = keep * a + add * v[c][i];
      b = keep * b + add;
      p = next;
    }
  }
  return out;
}

}  // namespace wisp::backend::selftest
