// Helpers for the vector code, compiled once for each SIMD target (Highway's foreach_target).
#if defined(WISP_BACKEND_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_BACKEND_CPU_SIMD_INL_H_
#undef WISP_BACKEND_CPU_SIMD_INL_H_
#else
#define WISP_BACKEND_CPU_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

#include "formats/half.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Targets that convert between f16 and f32 in hardware, to nearest even.
#undef WISP_HAVE_F16
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON
#define WISP_HAVE_F16 1
#else
#define WISP_HAVE_F16 0
#endif

// Calls body(tag, i) for whole vectors of [0, n), then for single elements.
template <class Body>
HWY_INLINE void ForEach(size_t n, const Body& body) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) body(d, i);
  for (; i < n; ++i) body(d1, i);
}

// Rounds to the nearest f16 value, ties to even, saturating at +-65504; a NaN stays one.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RoundToHalf(D d, V v) {
  const V largest = hn::Set(d, 65504.0F);
#if WISP_HAVE_F16
  const hn::Rebind<hwy::float16_t, D> dh;
  const V magnitude = hn::Abs(v);
  const V limited = hn::IfThenElse(hn::Gt(magnitude, largest), hn::CopySign(largest, v), v);
  return hn::PromoteTo(d, hn::DemoteTo(dh, limited));
#else
  const hn::RebindToUnsigned<D> du;
  const V magnitude = hn::Abs(v);
  const auto bits = hn::BitCast(du, magnitude);
  const auto even = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
  const auto normal =
      hn::And(hn::Add(hn::Add(bits, hn::Set(du, 0xfff)), even), hn::Set(du, 0xffffe000U));
  // Next to 0.5 the f32 spacing is that of subnormal halves, 2^-24.
  const V half = hn::Set(d, 0.5F);
  const V subnormal = hn::Sub(hn::Add(magnitude, half), half);
  V result =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-14F)), subnormal, hn::BitCast(d, normal));
  result = hn::IfThenElse(hn::Gt(magnitude, largest), largest, result);
  result = hn::CopySignToAbs(result, v);
  return hn::IfThenElse(hn::Eq(v, v), result, v);
#endif
}

// n halves at any address.
HWY_INLINE void HalvesToFloats(const std::byte* halves, float* out, size_t n) {
  size_t i = 0;
#if WISP_HAVE_F16
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const hn::Repartition<uint8_t, decltype(dh)> db;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto* from = reinterpret_cast<const uint8_t*>(halves + 2 * i);
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(db, from))), d, out + i);
  }
#endif
  for (; i < n; ++i) {
    uint16_t half;
    std::memcpy(&half, halves + 2 * i, sizeof half);
    out[i] = formats::f16_to_f32(half);
  }
}

// Saturating, see RoundToHalf.
HWY_INLINE void FloatsToHalves(const float* values, uint16_t* out, size_t n) {
  const hn::CappedTag<float, 1> d1;
  size_t i = 0;
#if WISP_HAVE_F16
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto rounded = RoundToHalf(d, hn::LoadU(d, values + i));
    hn::StoreU(hn::DemoteTo(dh, rounded), dh, reinterpret_cast<hwy::float16_t*>(out + i));
  }
#endif
  for (; i < n; ++i) {
    out[i] = formats::f32_to_f16(hn::GetLane(RoundToHalf(d1, hn::LoadU(d1, values + i))));
  }
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
