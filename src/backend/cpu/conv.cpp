// Conv: each channel by itself, its inputs in front of those of the run.
#include <algorithm>
#include <vector>

#include "backend/cpu/ops.h"

namespace wisp::backend::cpu {
namespace {

// Channels [begin, end) of a run.
struct Piece {
  const OpContext& context;
  const plan::Conv& op;
  Run run;
  size_t begin;
  size_t end;

  size_t width() const { return end - begin; }
  const float* x(size_t column, size_t offset) const {
    return context.floats(op.x) + (run.first + column) * context.width(op.x) + offset + begin;
  }

  // The inputs before the run's and those of it, [taps - 1 + count, width].
  std::vector<float> inputs(size_t before) const {
    const size_t channels = context.width(op.out);
    std::vector<float> rows((before + run.count) * width());
    if (context.continues(run)) {
      const float* state = context.state(op.state, run);
      for (size_t t = 0; t < before; ++t) {
        std::copy_n(state + t * channels + begin, width(), rows.data() + t * width());
      }
    }
    for (size_t c = 0; c < run.count; ++c) {
      float* to = rows.data() + (before + c) * width();
      std::copy_n(x(c, op.x_offset), width(), to);
      if (!op.in_gate) continue;
      const float* gate = x(c, *op.in_gate);
      for (size_t i = 0; i < width(); ++i) to[i] *= gate[i];
    }
    return rows;
  }
};

void run_piece(const Piece& piece) {
  const auto& [context, op, run, begin, end] = piece;
  const size_t channels = context.width(op.out);
  const WeightView& weight = context[op.weight];
  const size_t before = weight.rows - 1;
  const float* bias = context.vector(op.bias);
  const std::vector<float> inputs = piece.inputs(before);
  const size_t width = piece.width();
  for (size_t c = 0; c < run.count; ++c) {
    float* out = context.floats(op.out) + (run.first + c) * channels + begin;
    for (size_t i = 0; i < width; ++i) out[i] = bias == nullptr ? 0.0F : bias[begin + i];
    for (uint32_t j = 0; j < weight.rows; ++j) {
      const float* w = weight.floats(j) + begin;
      const float* in = inputs.data() + (c + j) * width;
      for (size_t i = 0; i < width; ++i) out[i] += w[i] * in[i];
    }
    if (op.activation) activate_row(*op.activation, out, out, width);
    if (!op.out_gate) continue;
    const float* gate = piece.x(c, *op.out_gate);
    for (size_t i = 0; i < width; ++i) out[i] *= gate[i];
  }
  float* state = context.state(op.state, run);
  for (size_t t = 0; t < before; ++t) {
    std::copy_n(inputs.data() + (run.count + t) * width, width, state + t * channels + begin);
  }
}

}  // namespace

std::vector<Run> runs_of(std::span<const ColumnView> columns) {
  std::vector<Run> runs;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i == 0 || columns[i].slot != columns[i - 1].slot) runs.push_back({i, 0});
    ++runs.back().count;
  }
  return runs;
}

void run_conv(const OpContext& context, const plan::Conv& op) {
  constexpr size_t kTile = 64;  // channels
  const size_t channels = context.width(op.out);
  const size_t tiles = (channels + kTile - 1) / kTile;
  for_runs(context, tiles, kTile * context[op.weight].rows, [&](const Run& run, size_t tile) {
    run_piece({context, op, run, tile * kTile, std::min(channels, (tile + 1) * kTile)});
  });
}

}  // namespace wisp::backend::cpu
