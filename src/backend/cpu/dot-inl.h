// Dot products of several rows with several columns, compiled once for each SIMD target. Every
// product has one accumulator vector that runs along the elements, whatever rows and columns are
// beside it; that is what makes results independent of the batch.
#if defined(WISP_BACKEND_CPU_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_BACKEND_CPU_DOT_INL_H_
#undef WISP_BACKEND_CPU_DOT_INL_H_
#else
#define WISP_BACKEND_CPU_DOT_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Some consecutive vectors of n floats.
struct FloatRows {
  const float* data;
  size_t stride;
  const float* row(size_t i) const { return data + i * stride; }
};

// store(r, c, dot(a.row(r), b.row(c))) for r < kR, c < kC.
template <size_t kR, size_t kC, class Store>
HWY_INLINE void DotTile(FloatRows a, FloatRows b, size_t n, const Store& store) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V sums[kR][kC];
  HWY_UNROLL(8)
  for (size_t r = 0; r < kR; ++r) {
    HWY_UNROLL(8)
    for (size_t c = 0; c < kC; ++c) sums[r][c] = hn::Zero(d);
  }
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V rows[kR];
    HWY_UNROLL(8)
    for (size_t r = 0; r < kR; ++r) rows[r] = hn::LoadU(d, a.row(r) + i);
    HWY_UNROLL(8)
    for (size_t c = 0; c < kC; ++c) {
      const V column = hn::LoadU(d, b.row(c) + i);
      HWY_UNROLL(8)
      for (size_t r = 0; r < kR; ++r) sums[r][c] = hn::MulAdd(rows[r], column, sums[r][c]);
    }
  }
  for (size_t r = 0; r < kR; ++r) {
    for (size_t c = 0; c < kC; ++c) {
      float sum = hn::GetLane(hn::SumOfLanes(d, sums[r][c]));
      for (size_t j = i; j < n; ++j) sum += a.row(r)[j] * b.row(c)[j];
      store(r, c, sum);
    }
  }
}

// All pairs of `rows` rows of a and `columns` rows of b, in register tiles.
template <size_t kR, size_t kC, class Store>
HWY_INLINE void DotRows(FloatRows a, size_t rows, FloatRows b, size_t column, size_t n,
                        const Store& store) {
  const FloatRows from{b.row(column), b.stride};
  const auto tile = [&](auto height, size_t r) HWY_ATTR {
    DotTile<decltype(height)::value, kC>(
        FloatRows{a.row(r), a.stride}, from, n,
        [&](size_t i, size_t j, float sum) { store(r + i, column + j, sum); });
  };
  size_t r = 0;
  for (; r + kR <= rows; r += kR) tile(std::integral_constant<size_t, kR>(), r);
  for (; r < rows; ++r) tile(std::integral_constant<size_t, 1>(), r);
}

template <class Store>
HWY_INLINE void DotAll(FloatRows a, size_t rows, FloatRows b, size_t columns, size_t n,
                       const Store& store) {
  size_t c = 0;
  for (; c + 4 <= columns; c += 4) DotRows<3, 4>(a, rows, b, c, n, store);
  for (; c + 2 <= columns; c += 2) DotRows<6, 2>(a, rows, b, c, n, store);
  for (; c < columns; ++c) DotRows<6, 1>(a, rows, b, c, n, store);
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
