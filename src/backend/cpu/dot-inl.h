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

// Some vectors of n floats, `stride` apart.
struct FloatRows {
  const float* data;
  size_t stride;
  const float* row(size_t i) const { return data + i * stride; }
};

using Tag4 = hn::CappedTag<float, 4>;
using Vec4 = hn::Vec<Tag4>;

// GCC would rather load a value again for each of its uses than keep it.
template <class V>
HWY_INLINE void KeepInRegister(V& v) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86
  asm("" : "+x"(v.raw));
#else
  (void)v;
#endif
}

// Lane i: the sum of the lanes of the i-th vector, always in one order.
template <class D, class V>
HWY_INLINE Vec4 FoldTo4(D d, V v) {
  if constexpr (hn::MaxLanes(d) > 4) {
    const hn::Half<D> half;
    return FoldTo4(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE Vec4 SumsOf4(D d, V v0, V v1, V v2, V v3) {
  const hn::Repartition<double, D> d64;
  const V v01 = hn::Add(hn::InterleaveLower(d, v0, v1), hn::InterleaveUpper(d, v0, v1));
  const V v23 = hn::Add(hn::InterleaveLower(d, v2, v3), hn::InterleaveUpper(d, v2, v3));
  const auto pair01 = hn::BitCast(d64, v01);
  const auto pair23 = hn::BitCast(d64, v23);
  return FoldTo4(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, pair01, pair23)),
                            hn::BitCast(d, hn::InterleaveUpper(d64, pair01, pair23))));
}

// store(c, {dot(a.row(0), b.row(c)), .. of rows 1, 2, 3}) for c < kC. Only the first kR lanes mean
// anything; kR is 4 or 1.
template <size_t kR, size_t kC, class Store>
HWY_INLINE void DotTile(FloatRows a, FloatRows b, size_t n, const Store& store) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V sums[4][kC];
  HWY_UNROLL(8)
  for (size_t r = 0; r < 4; ++r) {
    HWY_UNROLL(8)
    for (size_t c = 0; c < kC; ++c) sums[r][c] = hn::Zero(d);
  }
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V columns[kC];
    HWY_UNROLL(8)
    for (size_t c = 0; c < kC; ++c) columns[c] = hn::LoadU(d, b.row(c) + i);
    HWY_UNROLL(8)
    for (size_t r = 0; r < kR; ++r) {
      V row = hn::LoadU(d, a.row(r) + i);
      KeepInRegister(row);
      HWY_UNROLL(8)
      for (size_t c = 0; c < kC; ++c) sums[r][c] = hn::MulAdd(row, columns[c], sums[r][c]);
    }
  }
  HWY_UNROLL(8)
  for (size_t c = 0; c < kC; ++c) {
    Vec4 dots = SumsOf4(d, sums[0][c], sums[1][c], sums[2][c], sums[3][c]);
    if (i < n) {
      HWY_ALIGN float rest[4] = {0.0F, 0.0F, 0.0F, 0.0F};
      for (size_t r = 0; r < kR; ++r) {
        for (size_t j = i; j < n; ++j) rest[r] += a.row(r)[j] * b.row(c)[j];
      }
      dots = hn::Add(dots, hn::Load(Tag4(), rest));
    }
    store(c, dots);
  }
}

// store(r, c, dots, count) for all pairs of `rows` rows of a and `columns` rows of b, in register
// tiles: `count` lanes (4 or 1) of `dots` are those of rows r.. with column c.
template <size_t kR, class Store>
HWY_INLINE void DotRows(FloatRows a, FloatRows b, size_t columns, size_t n, const Store& store) {
  size_t c = 0;
  for (; c + 3 <= columns; c += 3) {
    DotTile<kR, 3>(a, FloatRows{b.row(c), b.stride}, n,
                   [&](size_t i, Vec4 dots) HWY_ATTR { store(c + i, dots); });
  }
  const auto last = [&](size_t i, Vec4 dots) HWY_ATTR { store(c + i, dots); };
  if (c + 2 == columns) DotTile<kR, 2>(a, FloatRows{b.row(c), b.stride}, n, last);
  if (c + 1 == columns) DotTile<kR, 1>(a, FloatRows{b.row(c), b.stride}, n, last);
}

template <class Store>
HWY_INLINE void DotAll(FloatRows a, size_t rows, FloatRows b, size_t columns, size_t n,
                       const Store& store) {
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    DotRows<4>(FloatRows{a.row(r), a.stride}, b, columns, n,
               [&](size_t c, Vec4 dots) HWY_ATTR { store(r, c, dots, size_t{4}); });
  }
  for (; r < rows; ++r) {
    DotRows<1>(FloatRows{a.row(r), a.stride}, b, columns, n,
               [&](size_t c, Vec4 dots) HWY_ATTR { store(r, c, dots, size_t{1}); });
  }
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
