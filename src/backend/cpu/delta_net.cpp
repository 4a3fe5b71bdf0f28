// DeltaNet: each head of a run by itself, column by column in both classes.
#include <cmath>
#include <vector>

#include "backend/cpu/ops.h"

namespace wisp::backend::cpu {
namespace {

float dot(const float* a, const float* b, size_t n) {
  float sum = 0.0F;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// What one column gives a head.
struct Inputs {
  std::vector<float> q;
  std::vector<float> k;
  const float* v = nullptr;
  float decay = 0.0F;
  float beta = 0.0F;
};

void scaled(const float* x, size_t n, float scale, std::vector<float>& out) {
  const float factor = scale / std::sqrt(dot(x, x, n) + 1e-6F);
  out.resize(n);
  for (size_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

void read_inputs(const OpContext& context, const plan::DeltaNet& op, size_t column, uint32_t head,
                 Inputs& in) {
  const size_t keys = size_t{op.num_key_heads} * op.key_dim;
  const size_t key = size_t{op.key_head(head)} * op.key_dim;
  const float* x = context.floats(op.x) + column * context.width(op.x);
  const float* gates =
      context.floats(op.gates) + column * context.width(op.gates) + op.gates_offset;
  scaled(x + key, op.key_dim, 1.0F / std::sqrt(static_cast<float>(op.key_dim)), in.q);
  scaled(x + keys + key, op.key_dim, 1.0F, in.k);
  in.v = x + 2 * keys + size_t{head} * op.value_dim;
  const float a = gates[op.num_heads + head] + context.vector(op.dt_bias)[head];
  in.decay = std::exp(context.vector(op.rate)[head] * softplus(a));
  in.beta = 1.0F / (1.0F + std::exp(-gates[head]));
}

// s is [key_dim, value_dim].
void step(const Inputs& in, size_t value_dim, float* s, float* delta, float* out) {
  std::fill_n(delta, value_dim, 0.0F);
  for (size_t i = 0; i < in.k.size(); ++i) {
    const float k = in.k[i];
    float* row = s + i * value_dim;
    for (size_t j = 0; j < value_dim; ++j) {
      row[j] *= in.decay;
      delta[j] += k * row[j];
    }
  }
  for (size_t j = 0; j < value_dim; ++j) delta[j] = in.beta * (in.v[j] - delta[j]);
  std::fill_n(out, value_dim, 0.0F);
  for (size_t i = 0; i < in.k.size(); ++i) {
    const float k = in.k[i];
    const float q = in.q[i];
    float* row = s + i * value_dim;
    for (size_t j = 0; j < value_dim; ++j) {
      row[j] += k * delta[j];
      out[j] += q * row[j];
    }
  }
}

void run_head(const OpContext& context, const plan::DeltaNet& op, const Run& run, uint32_t head) {
  const size_t head_size = size_t{op.key_dim} * op.value_dim;
  float* s = context.state(op.state, run) + head * head_size;
  if (!context.continues(run)) std::fill_n(s, head_size, 0.0F);
  Inputs in;
  std::vector<float> delta(op.value_dim);
  for (size_t c = run.first; c < run.first + run.count; ++c) {
    read_inputs(context, op, c, head, in);
    step(in, op.value_dim, s, delta.data(),
         context.floats(op.out) + c * context.width(op.out) + size_t{head} * op.value_dim);
  }
}

}  // namespace

void run_delta_net(const OpContext& context, const plan::DeltaNet& op) {
  for_runs(context, op.num_heads, size_t{4} * op.key_dim * op.value_dim,
           [&](const Run& run, size_t head) {
             run_head(context, op, run, static_cast<uint32_t>(head));
           });
}

}  // namespace wisp::backend::cpu
