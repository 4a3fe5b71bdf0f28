// Wkv: each channel of a run by itself, column by column in both classes.
#include <algorithm>
#include <cmath>

#include "backend/cpu/ops.h"

namespace wisp::backend::cpu {
namespace {

constexpr float kNothing = -1e38F;  // the largest exponent of no values

void run_channel(const OpContext& context, const plan::Wkv& op, const Run& run, size_t i) {
  const size_t channels = context.width(op.out);
  const float rate = context.vector(op.rate)[i];
  const float first = context.vector(op.first)[i];
  float* state = context.state(op.state, run) + i;
  const bool continues = context.continues(run);
  float a = continues ? state[0] : 0.0F;
  float b = continues ? state[channels] : 0.0F;
  float p = continues ? state[2 * channels] : kNothing;
  for (size_t c = run.first; c < run.first + run.count; ++c) {
    const float k = context.floats(op.k)[c * channels + i];
    const float v = context.floats(op.v)[c * channels + i];
    const float w = first + k;
    const float now = p > w ? p : w;
    const float old = std::exp(p - now);
    const float own = std::exp(w - now);
    context.floats(op.out)[c * channels + i] = (old * a + own * v) / (old * b + own);
    const float next = p + rate > k ? p + rate : k;
    const float keep = std::exp(p + rate - next);
    const float add = std::exp(k - next);
    a = keep * a + add * v;
    b = keep * b + add;
    p = next;
  }
  state[0] = a;
  state[channels] = b;
  state[2 * channels] = p;
}

}  // namespace

void run_wkv(const OpContext& context, const plan::Wkv& op) {
  for_runs(context, context.width(op.out), 64,
           [&](const Run& run, size_t channel) { run_channel(context, op, run, channel); });
}

}  // namespace wisp::backend::cpu
