// Norms of groups of a row, compiled once for each SIMD target (Highway's foreach_target).
#if defined(WISP_BACKEND_CPU_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_BACKEND_CPU_NORM_INL_H_
#undef WISP_BACKEND_CPU_NORM_INL_H_
#else
#define WISP_BACKEND_CPU_NORM_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

#include "backend/cpu/norm_rule.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

// The sum of (x - center)^2.
HWY_INLINE float SumSquares(const float* x, size_t n, float center) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto middle = hn::Set(d, center);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::Sub(hn::LoadU(d, x + i), middle);
    const auto b = hn::Sub(hn::LoadU(d, x + i + lanes), middle);
    sum0 = hn::MulAdd(a, a, sum0);
    sum1 = hn::MulAdd(b, b, sum1);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < n; ++i) sum += (x[i] - center) * (x[i] - center);
  return sum;
}

HWY_INLINE float Sum(const float* x, size_t n) {
  const hn::ScalableTag<float> d;
  auto lanes = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) lanes = hn::Add(lanes, hn::LoadU(d, x + i));
  float sum = hn::GetLane(hn::SumOfLanes(d, lanes));
  for (; i < n; ++i) sum += x[i];
  return sum;
}

// A row of `width` elements, group by group; `out` may be x.
HWY_INLINE void NormRow(const NormRule& rule, const float* x, float* out, size_t width) {
  const float n = static_cast<float>(rule.group);
  for (size_t at = 0; at < width; at += rule.group) {
    const float mean = rule.kind == plan::NormKind::layer ? Sum(x + at, rule.group) / n : 0.0F;
    const float factor = 1.0F / std::sqrt(SumSquares(x + at, rule.group, mean) / n + rule.eps);
    const size_t from = at / rule.group * rule.weight_stride;
    ForEach(rule.group, [&](auto tag, size_t i) HWY_ATTR {
      auto v = hn::Sub(hn::LoadU(tag, x + at + i), hn::Set(tag, mean));
      v = hn::Mul(v, hn::Set(tag, factor));
      if (rule.weight != nullptr) {
        const auto weight = hn::LoadU(tag, rule.weight + from + i);
        v = hn::Mul(v, hn::Add(weight, hn::Set(tag, rule.weight_offset)));
      }
      if (rule.bias != nullptr) v = hn::Add(v, hn::LoadU(tag, rule.bias + from + i));
      hn::StoreU(v, tag, out + at + i);
    });
  }
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
