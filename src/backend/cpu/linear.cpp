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
#include "backend/cpu/multiply.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

// `rows` rows of weights from `first_row` on, each `n` floats, times `columns` rows of x. Weights
// stay in the nearest cache while a chunk of columns passes, and that in the next.
void MultiplyTile(const float* weights, size_t first_row, size_t rows, const float* x,
                  size_t columns, size_t n, const LinearOut& out) {
  const size_t chunk = std::max<size_t>(3, 64 * 1024 / n / 3 * 3);
  for (size_t first = 0; first < columns; first += chunk) {
    DotAll(FloatRows{weights, n}, rows, FloatRows{x + first * n, n},
           std::min(chunk, columns - first), n,
           [&](size_t r, size_t c, Vec4 dots, size_t count) HWY_ATTR {
             const size_t row = first_row + r;
             if (count == 1) return out.store(row, first + c, hn::GetLane(dots));
             const Tag4 d;
             if (out.bias != nullptr) dots = hn::Add(dots, hn::LoadU(d, out.bias + row));
             dots = hn::Mul(dots, hn::Set(d, out.scale));
             if (out.residual != nullptr) {
               const float* residual = out.residual + (first + c) * out.residual_stride + row;
               dots = hn::Add(hn::LoadU(d, residual), dots);
             }
             hn::StoreU(dots, d, out.out + (first + c) * out.out_stride + row);
           });
  }
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

// Rows [first, first + rows) as floats: in place where they lie so, else decoded into `scratch`.
const float* tile_floats(const WeightView& weight, size_t first, size_t rows, bool to_half,
                         Buffer& scratch) {
  if (weight.dtype == formats::DType::F32 && !to_half &&
      weight.together(static_cast<uint32_t>(first), static_cast<uint32_t>(rows))) {
    return weight.floats(static_cast<uint32_t>(first));
  }
  scratch.reserve(rows * weight.cols * sizeof(float));
  auto* out = reinterpret_cast<float*>(scratch.data());
  for (size_t r = 0; r < rows; ++r) {
    decode_row(weight.dtype, weight.row(static_cast<uint32_t>(first + r)), out + r * weight.cols,
               weight.cols, to_half);
  }
  return out;
}

}  // namespace

size_t float_tile_rows(uint32_t cols) {
  // They stay in the second cache while all columns pass.
  constexpr size_t kTileFloats = 32 * 1024;
  return std::clamp<size_t>(kTileFloats / cols / 4 * 4, 4, 48);
}

void multiply_floats(const WeightView& weight, size_t first, size_t rows, bool to_half,
                     const float* x, size_t columns, const LinearOut& out, Buffer& scratch) {
  const float* weights = tile_floats(weight, first, rows, to_half, scratch);
  HWY_DYNAMIC_DISPATCH(MultiplyTile)(weights, first, rows, x, columns, weight.cols, out);
}

void round_to_halves(const float* x, float* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(RoundRow)(x, out, n);
}

void run_linear(const OpContext& context, const plan::Linear& op) {
  if (context.plan[op.x].type == plan::ValueType::q8) return run_linear_q8(context, op);
  const WeightView& weight = context[op.weight];
  const size_t columns = context.rows(op.x);
  const size_t n = weight.cols;
  const float* x = context.floats(op.x);
  if (op.f16_inputs) x = rounded_inputs(context, x, columns, n);
  const LinearOut out(context, op);
  const size_t tile = float_tile_rows(weight.cols);
  context.pool.parallel_for(
      (weight.rows + tile - 1) / tile, 1, [&](size_t begin, size_t end, size_t worker) {
        for (size_t t = begin; t < end; ++t) {
          multiply_floats(weight, t * tile, std::min(tile, weight.rows - t * tile), op.f16_inputs,
                          x, columns, out, context.scratch.workers[worker]);
        }
      });
}

}  // namespace wisp::backend::cpu
#endif
