// Ops on a residual of several streams, and the cutoff of gates, in double precision, written apart
// from the backends.
#pragma once

#include <span>
#include <vector>

#include "plan/op.h"

namespace wisp::backend::selftest {

using Matrix = std::vector<std::vector<double>>;  // [rows][width]

struct StreamRows {
  Matrix first;
  Matrix rest;
};

Matrix stream_match_reference(const plan::StreamMatch& op, const Matrix& first, const Matrix& rest);
StreamRows stream_predict_reference(const Matrix& first, const Matrix& rest, const Matrix& coefs);
StreamRows stream_correct_reference(const Matrix& first, const Matrix& rest, const Matrix& y,
                                    const Matrix& coefs);

// What a gate has to exceed.
double cutoff_reference(double cutoff, std::span<const double> gates);

}  // namespace wisp::backend::selftest
