// Route, ExpertLinear and Combine. Tokens are grouped by expert, so that a step reads each expert's
// weights once.
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/cpu/multiply.h"
#include "backend/cpu/ops.h"

namespace wisp::backend::cpu {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

// The number of the largest of n values, the first where several are equal; a NaN counts as the
// least.
size_t best_of(const float* values, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; ++i) {
    if (values[i] > values[best] || (std::isnan(values[best]) && !std::isnan(values[i]))) best = i;
  }
  return best;
}

void score(plan::RouterScore kind, const float* logits, float* scores, size_t n) {
  if (kind == plan::RouterScore::sigmoid) {
    for (size_t i = 0; i < n; ++i) scores[i] = 1.0F / (1.0F + std::exp(-logits[i]));
    return;
  }
  const float top = logits[best_of(logits, n)];
  float sum = 0.0F;
  for (size_t i = 0; i < n; ++i) sum += scores[i] = std::exp(logits[i] - top);
  for (size_t i = 0; i < n; ++i) scores[i] /= sum;
}

float group_value(plan::GroupScore kind, float* choice, size_t n) {
  const size_t first = best_of(choice, n);
  if (kind == plan::GroupScore::best || n == 1) return choice[first];
  const float value = std::exchange(choice[first], kLeast);
  const float second = choice[best_of(choice, n)];
  choice[first] = value;
  return value + second;
}

// Leaves only the best groups to choose from.
void keep_groups(const plan::Route& op, std::vector<float>& choice) {
  const size_t size = choice.size() / op.num_groups;
  std::vector<float> values(op.num_groups);
  for (size_t g = 0; g < op.num_groups; ++g) {
    values[g] = group_value(op.group_score, &choice[g * size], size);
  }
  std::vector<bool> kept(op.num_groups, false);
  for (uint32_t i = 0; i < op.top_groups; ++i) {
    const size_t g = best_of(values.data(), values.size());
    kept[g] = true;
    values[g] = kLeast;
  }
  for (size_t e = 0; e < choice.size(); ++e) {
    if (!kept[e / size]) choice[e] = kLeast;
  }
}

void route(const plan::Route& op, const float* logits, const float* bias,
           const float* expert_scales, float* out, size_t n) {
  std::vector<float> scores(n);
  score(op.score, logits, scores.data(), n);
  std::vector<float> choice = scores;
  for (size_t e = 0; bias != nullptr && e < n; ++e) choice[e] += bias[e];
  if (op.num_groups > 1) keep_groups(op, choice);
  std::vector<bool> chosen(n, false);
  float sum = 0.0F;
  float* weights = out + op.top_k;
  for (uint32_t s = 0; s < op.top_k; ++s) {
    size_t best = n;
    for (size_t e = 0; e < n; ++e) {
      if (chosen[e]) continue;
      if (best == n || choice[e] > choice[best] ||
          (std::isnan(choice[best]) && choice[e] == choice[e]))
        best = e;
    }
    chosen[best] = true;
    out[s] = static_cast<float>(best);
    weights[s] = scores[best];
    sum += scores[best];
  }
  const float factor = op.normalise ? op.scale / sum : op.scale;
  for (uint32_t s = 0; s < op.top_k; ++s) {
    weights[s] *= factor;
    if (expert_scales != nullptr) weights[s] *= expert_scales[static_cast<size_t>(out[s])];
  }
}

// The chosen experts of all columns, by expert: item i is expert item.slot of item.column.
struct Item {
  uint32_t column;
  uint32_t slot;
};

struct Grouped {
  std::vector<Item> items;     // sorted by expert, then by column
  std::vector<uint32_t> ends;  // one after the last item of each expert
};

Grouped group(const OpContext& context, const plan::ExpertLinear& op) {
  const size_t columns = context.rows(op.x);
  const float* routes = op.routes ? context.floats(*op.routes) : nullptr;
  const auto expert = [&](size_t column, uint32_t slot) {
    return routes == nullptr ? slot : static_cast<uint32_t>(routes[column * 2 * op.top_k + slot]);
  };
  Grouped grouped;
  grouped.ends.assign(op.num_experts, 0);
  grouped.items.resize(columns * op.top_k);
  for (size_t c = 0; c < columns; ++c) {
    for (uint32_t s = 0; s < op.top_k; ++s) ++grouped.ends[expert(c, s)];
  }
  std::vector<uint32_t> next(op.num_experts, 0);
  std::exclusive_scan(grouped.ends.begin(), grouped.ends.end(), next.begin(), 0U);
  for (size_t c = 0; c < columns; ++c) {
    for (uint32_t s = 0; s < op.top_k; ++s) {
      grouped.items[next[expert(c, s)]++] = {static_cast<uint32_t>(c), s};
    }
  }
  grouped.ends = next;
  return grouped;
}

// Calls multiply(weight, begin, end, first_item, count, bias, worker) for pieces of the rows of
// every expert that has items.
template <typename Multiply>
void for_experts(const OpContext& context, const plan::ExpertLinear& op, const Grouped& grouped,
                 const Multiply& multiply) {
  const WeightView& weight = context[op.weight];
  const uint32_t rows = weight.rows / op.num_experts;
  const size_t tile = float_tile_rows(weight.cols);
  struct Work {
    WeightView weight;
    const float* bias;
    size_t first;
    size_t count;
  };
  std::vector<Work> work;
  const float* bias = context.vector(op.bias);
  for (uint32_t e = 0; e < op.num_experts; ++e) {
    const uint32_t first = e == 0 ? 0 : grouped.ends[e - 1];
    if (grouped.ends[e] == first) continue;
    work.push_back({weight.slice(e * rows, rows),
                    bias != nullptr ? bias + size_t{e} * rows : nullptr, first,
                    grouped.ends[e] - first});
  }
  const size_t tiles = (rows + tile - 1) / tile;
  context.pool.parallel_for(work.size() * tiles, 1, [&](size_t begin, size_t end, size_t worker) {
    for (size_t i = begin; i < end; ++i) {
      const Work& one = work[i / tiles];
      const size_t row = i % tiles * tile;
      multiply(one.weight, row, std::min<size_t>(rows, row + tile), one.first, one.count, one.bias,
               worker);
    }
  });
}

// x as f32, one row an item.
const float* gather(const OpContext& context, const plan::ExpertLinear& op,
                    const Grouped& grouped) {
  const size_t cols = context[op.weight].cols;
  const size_t width = context.width(op.x);
  context.scratch.shared.reserve(grouped.items.size() * cols * sizeof(float));
  auto* out = reinterpret_cast<float*>(context.scratch.shared.data());
  const float* x = context.floats(op.x);
  for_rows(context, grouped.items.size(), cols, [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i) {
      const Item& item = grouped.items[i];
      const float* from = x + item.column * width + (width > cols ? item.slot * cols : 0);
      if (op.f16_inputs) {
        round_to_halves(from, out + i * cols, cols);
      } else {
        std::memcpy(out + i * cols, from, cols * sizeof(float));
      }
    }
  });
  return out;
}

// x as q8, one column an item.
Q8Columns gather_q8(const OpContext& context, const plan::ExpertLinear& op,
                    const Grouped& grouped) {
  const size_t width = context.width(op.x);
  const size_t stride = plan::row_bytes(context.plan[op.x]);
  Q8Columns x;
  x.width = context[op.weight].cols;
  x.count = grouped.items.size();
  const size_t factor_bytes = x.count * x.blocks() * 4 * sizeof(float);
  Buffer& memory = context.scratch.shared;
  memory.reserve(factor_bytes + x.count * x.width * sizeof(int16_t));
  auto* factors = reinterpret_cast<float*>(memory.data());
  auto* quants = reinterpret_cast<int16_t*>(memory.data() + factor_bytes);
  for_rows(context, x.count, x.width, [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i) {
      const Item& item = grouped.items[i];
      spread_q8(context.bytes(op.x) + item.column * stride, width,
                width > x.width ? item.slot * x.width : 0, x.width, quants + i * x.width,
                factors + i * x.blocks() * 4);
    }
  });
  x.factors = factors;
  x.quants = quants;
  return x;
}

}  // namespace

void run_route(const OpContext& context, const plan::Route& op) {
  const size_t n = context.width(op.logits);
  const float* logits = context.floats(op.logits);
  const float* bias = context.vector(op.bias);
  const float* expert_scales = context.vector(op.expert_scales);
  float* out = context.floats(op.out);
  for_rows(context, context.rows(op.logits), 8 * n, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) {
      route(op, logits + row * n, bias, expert_scales, out + row * 2 * op.top_k, n);
    }
  });
}

void run_expert_linear(const OpContext& context, const plan::ExpertLinear& op) {
  const Grouped grouped = group(context, op);
  const size_t rows = context[op.weight].rows / op.num_experts;
  context.scratch.partials.reserve(grouped.items.size() * rows * sizeof(float));
  auto* sums = reinterpret_cast<float*>(context.scratch.partials.data());
  if (context.plan[op.x].type == plan::ValueType::q8) {
    const Q8Columns x = gather_q8(context, op, grouped);
    for_experts(context, op, grouped,
                [&](const WeightView& weight, size_t begin, size_t end, size_t first, size_t count,
                    const float* bias, size_t) {
                  Q8Columns own = x;
                  own.count = count;
                  own.quants += first * x.width;
                  own.factors += first * x.blocks() * 4;
                  multiply_q8(weight, begin, end, own, LinearOut(sums + first * rows, rows, bias));
                });
  } else {
    const float* x = gather(context, op, grouped);
    for_experts(context, op, grouped,
                [&](const WeightView& weight, size_t begin, size_t end, size_t first, size_t count,
                    const float* bias, size_t worker) {
                  multiply_floats(
                      weight, begin, end - begin, op.f16_inputs, x + first * weight.cols, count,
                      LinearOut(sums + first * rows, rows, bias), context.scratch.workers[worker]);
                });
  }
  float* out = context.floats(op.out);
  const size_t width = context.width(op.out);
  for_rows(context, grouped.items.size(), rows, [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i) {
      const Item& item = grouped.items[i];
      std::memcpy(out + item.column * width + item.slot * rows, sums + i * rows,
                  rows * sizeof(float));
    }
  });
}

void run_combine(const OpContext& context, const plan::Combine& op) {
  const size_t width = context.width(op.out);
  const size_t top_k = context.width(op.routes) / 2;
  const float* x = context.floats(op.x);
  const float* routes = context.floats(op.routes);
  const float* residual = op.residual ? context.floats(*op.residual) : nullptr;
  float* out = context.floats(op.out);
  for_rows(context, context.rows(op.x), top_k * width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) {
      const float* weights = routes + row * 2 * top_k + top_k;
      for (size_t i = 0; i < width; ++i) {
        float sum = 0.0F;
        for (size_t s = 0; s < top_k; ++s) sum += weights[s] * x[(row * top_k + s) * width + i];
        sum *= op.scale;
        out[row * width + i] = residual != nullptr ? residual[row * width + i] + sum : sum;
      }
    }
  });
}

}  // namespace wisp::backend::cpu
