// Ops with a state, in double precision, column by column, written apart from the backends.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "plan/op.h"

namespace wisp::backend::selftest {

using Matrix = std::vector<std::vector<double>>;  // [rows][width]

// The plain activation functions.
double activate_reference(plan::Activation activation, double x);

// Out rows of a step's columns; `states` are the op's, [row][width].
Matrix conv_reference(const plan::Conv& op, std::span<const Column> columns, const Matrix& x,
                      const Matrix& weight, const std::vector<double>* bias, Matrix& states);

Matrix delta_net_reference(const plan::DeltaNet& op, std::span<const Column> columns,
                           const Matrix& x, const Matrix& gates, const std::vector<double>& rate,
                           const std::vector<double>& dt_bias, Matrix& states);

// What a scan's reference reads beside its state.
struct ScanInputs {
  const Matrix& x;
  const Matrix& dt;
  const Matrix& bc;
  const Matrix& rate;
  const std::vector<double>& dt_bias;
  const std::vector<double>& skip;
};
Matrix scan_reference(const plan::Scan& op, std::span<const Column> columns, uint32_t channels,
                      const ScanInputs& in, Matrix& states);

Matrix wkv_reference(std::span<const Column> columns, const Matrix& k, const Matrix& v,
                     const std::vector<double>& rate, const std::vector<double>& first,
                     Matrix& states);

}  // namespace wisp::backend::selftest
