// Linear with f32 inputs: tiles of decoded weights times all columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/highway.h>

#include <cstring>

#include "backend/cpu/decode.h"
#include "backend/cpu/dot-inl.h"
#include "backend/cpu/linear_out.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

// `rows` rows of weights from `first_row` on, each `n` floats, times `columns` rows of x.
void MultiplyTile(const float* weights, size_t first_row, size_t rows, const float* x,
                  size_t columns, size_t n, const LinearOut& out) {
  DotAll(FloatRows{weights, n}, rows, FloatRows{x, n}, columns, n,
         [&](size_t r, size_t c, float sum) { out.store(first_row + r, c, sum); });
}

void RoundRow(const float* x, float* out, size_t n) {
  ForEach(n, [&](auto tag, size_t i)
                 HWY_ATTR { hn::StoreU(RoundToHalf(tag, hn::LoadU(tag, x + i)), tag, out + i); });
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(MultiplyTile);
HWY_EXPORT(RoundRow);

namespace {

// x rounded to f16 values, in the op's scratch memory.
const float* rounded_inputs(const OpContext& context, const float* x, size_t rows, size_t width) {
  context.scratch.shared.reserve(rows * width * sizeof(float));
  auto* out = reinterpret_cast<float*>(context.scratch.shared.data());
  const auto round = HWY_DYNAMIC_DISPATCH(RoundRow);
  for_rows(context, rows, 2 * width, [&](size_t begin, size_t end, size_t) {
    round(x + begin * width, out + begin * width, (end - begin) * width);
  });
  return out;
}

// Rows decoded at once: some tens of KiB, which stay in the nearest caches while all columns pass.
size_t tile_rows(uint32_t cols) {
  constexpr size_t kTileFloats = 24 * 1024;
  return std::clamp<size_t>(kTileFloats / cols / 6 * 6, 6, 48);
}

}  // namespace

void run_linear(const OpContext& context, const plan::Linear& op) {
  if (context.plan[op.x].type == plan::ValueType::q8) return run_linear_q8(context, op);
  const WeightView& weight = context[op.weight];
  const size_t columns = context.rows(op.x);
  const size_t n = weight.cols;
  const float* x = context.floats(op.x);
  if (op.f16_inputs) x = rounded_inputs(context, x, columns, n);
  const LinearOut out(context, op);
  const auto multiply = HWY_DYNAMIC_DISPATCH(MultiplyTile);
  const size_t tile = tile_rows(weight.cols);
  const size_t tiles = (weight.rows + tile - 1) / tile;
  context.pool.parallel_for(tiles, 1, [&](size_t begin, size_t end, size_t worker) {
    Buffer& scratch = context.scratch.workers[worker];
    scratch.reserve(tile * n * sizeof(float));
    auto* decoded = reinterpret_cast<float*>(scratch.data());
    for (size_t t = begin; t < end; ++t) {
      const size_t first = t * tile;
      const size_t rows = std::min(tile, weight.rows - first);
      for (size_t r = 0; r < rows; ++r) {
        decode_row(weight.dtype, weight.row(static_cast<uint32_t>(first + r)), decoded + r * n, n,
                   op.f16_inputs);
      }
      multiply(decoded, first, rows, x, columns, n, out);
    }
  });
}

}  // namespace wisp::backend::cpu
#endif
