// Scan: each head of a run by itself, column by column in both classes.
#include <algorithm>
#include <cmath>

#include "backend/cpu/ops.h"

namespace wisp::backend::cpu {
namespace {

// One column of a channel: h of n elements, `decay` likewise.
float step(float* h, size_t n, const float* decay, float input, const float* b, const float* c) {
  float sum = 0.0F;
  for (size_t i = 0; i < n; ++i) {
    h[i] = decay[i] * h[i] + input * b[i];
    sum += c[i] * h[i];
  }
  return sum;
}

void run_head(const OpContext& context, const plan::Scan& op, const Run& run, uint32_t head) {
  const size_t channels = context.width(op.out);
  const size_t share = channels / op.num_heads;
  const size_t n = op.state_size;
  const size_t group = head / (op.num_heads / op.num_groups) * n;
  const WeightView& rates = context[op.rate];
  const float* rate = rates.floats(head);
  float* state = context.state(op.state, run) + head * share * n;
  if (!context.continues(run)) std::fill_n(state, share * n, 0.0F);
  std::vector<float> decay(n);
  for (size_t column = run.first; column < run.first + run.count; ++column) {
    const float* x = context.floats(op.x) + column * context.width(op.x) + head * share;
    const float* bc = context.floats(op.bc) + column * context.width(op.bc) + group;
    float* out = context.floats(op.out) + column * channels + head * share;
    const float raw = context.floats(op.dt)[column * context.width(op.dt) + op.dt_offset + head];
    float dt = softplus(raw + context.vector(op.dt_bias)[head]);
    if (dt < op.dt_min) dt = op.dt_min;
    if (dt > op.dt_max) dt = op.dt_max;
    for (size_t i = 0; i < n; ++i) decay[i] = std::exp(dt * rate[rates.cols == 1 ? 0 : i]);
    for (size_t i = 0; i < share; ++i) {
      const float sum =
          step(state + i * n, n, decay.data(), dt * x[i], bc + op.b_offset, bc + op.c_offset);
      out[i] = sum + context.vector(op.skip)[head] * x[i];
    }
  }
}

}  // namespace

float softplus(float v) { return (v > 0.0F ? v : 0.0F) + std::log1p(std::exp(-std::fabs(v))); }

void run_scan(const OpContext& context, const plan::Scan& op) {
  const size_t work = 8 * size_t{context.width(op.out)} / op.num_heads * op.state_size;
  for_runs(context, op.num_heads, work, [&](const Run& run, size_t head) {
    run_head(context, op, run, static_cast<uint32_t>(head));
  });
}

}  // namespace wisp::backend::cpu
