// Where a Linear puts its sums.
#pragma once

#include <cstddef>

#include "backend/cpu/context.h"
#include "plan/op.h"

namespace wisp::backend::cpu {

struct LinearOut {
  LinearOut(const OpContext& context, const plan::Linear& op)
      : out(context.floats(op.out) + op.out_offset),
        out_stride(context.width(op.out)),
        bias(context.vector(op.bias)),
        residual(op.residual ? context.floats(*op.residual) : nullptr),
        residual_stride(context[op.weight].rows),
        scale(op.scale) {}

  // Sums with an optional bias, without a residual.
  LinearOut(float* out, size_t out_stride, const float* bias)
      : out(out), out_stride(out_stride), bias(bias) {}

  // out[column][row] = residual + scale * (bias + sum).
  void store(size_t row, size_t column, float sum) const {
    if (bias != nullptr) sum += bias[row];
    sum *= scale;
    if (residual != nullptr) sum += residual[column * residual_stride + row];
    out[column * out_stride + row] = sum;
  }

  float* out;
  size_t out_stride;
  const float* bias;
  const float* residual = nullptr;
  size_t residual_stride = 0;
  float scale = 1.0F;
};

// Rows that one piece of work takes: about four pieces a thread, but no less than 16 KiB of
// weights.
inline size_t row_grain(const OpContext& context, const WeightView& weight) {
  const uint64_t least = (16384 + weight.row_bytes - 1) / weight.row_bytes;
  const uint64_t pieces = context.pool.size() * 4;
  return std::max<uint64_t>(least, (weight.rows + pieces - 1) / pieces);
}

}  // namespace wisp::backend::cpu
