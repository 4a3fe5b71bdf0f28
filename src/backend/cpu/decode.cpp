#include "backend/cpu/decode.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/decode.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/highway.h>

#include <cstring>

#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

// At most 16 lanes: half a block of 32.
using Tag = hn::CappedTag<float, 16>;
using V = hn::Vec<Tag>;
using TagInt = hn::RebindToSigned<Tag>;
using VecInt = hn::Vec<TagInt>;

HWY_INLINE float Half(const std::byte* from) {
  uint16_t half;
  std::memcpy(&half, from, sizeof half);
  return formats::f16_to_f32(half);
}

HWY_INLINE VecInt Unsigned(const std::byte* from) {
  const hn::Rebind<uint8_t, Tag> d;
  return hn::PromoteTo(TagInt(), hn::LoadU(d, reinterpret_cast<const uint8_t*>(from)));
}

HWY_INLINE VecInt Signed(const std::byte* from) {
  const hn::Rebind<int8_t, Tag> d;
  return hn::PromoteTo(TagInt(), hn::LoadU(d, reinterpret_cast<const int8_t*>(from)));
}

// The products and sums below are those of formats' dequantize functions, in their order.
template <bool kToHalf>
HWY_INLINE void Put(V value, float* out) {
  hn::StoreU(kToHalf ? RoundToHalf(Tag(), value) : value, Tag(), out);
}

// Q4_0 (kBytes 18: scale * (q - 8)) and Q4_1 (20: scale * q + offset).
template <bool kToHalf, size_t kBytes>
void DecodeQ4(const std::byte* blocks, float* out, size_t n) {
  const Tag d;
  for (size_t block = 0; block < n / 32; ++block, blocks += kBytes, out += 32) {
    const V scale = hn::Set(d, Half(blocks));
    const V offset = kBytes == 20 ? hn::Set(d, Half(blocks + 2)) : hn::Zero(d);
    const auto decode = [&](VecInt q) HWY_ATTR {
      if (kBytes == 18) {
        return hn::Mul(scale, hn::ConvertTo(d, hn::Sub(q, hn::Set(TagInt(), 8))));
      }
      return hn::Add(hn::Mul(scale, hn::ConvertTo(d, q)), offset);
    };
    for (size_t i = 0; i < 16; i += hn::Lanes(d)) {
      const VecInt bytes = Unsigned(blocks + kBytes - 16 + i);
      Put<kToHalf>(decode(hn::And(bytes, hn::Set(TagInt(), 15))), out + i);
      Put<kToHalf>(decode(hn::ShiftRight<4>(bytes)), out + 16 + i);
    }
  }
}

template <bool kToHalf>
void DecodeQ8(const std::byte* blocks, float* out, size_t n) {
  const Tag d;
  for (size_t block = 0; block < n / 32; ++block, blocks += 34, out += 32) {
    const V scale = hn::Set(d, Half(blocks));
    for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
      Put<kToHalf>(hn::Mul(scale, hn::ConvertTo(d, Signed(blocks + 2 + i))), out + i);
    }
  }
}

template <bool kToHalf>
void DecodeBf16(const std::byte* blocks, float* out, size_t n) {
  ForEach(n, [&](auto tag, size_t i) HWY_ATTR {
    using D = decltype(tag);
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint16_t, D> d16;
    const hn::Repartition<uint8_t, decltype(d16)> d8;
    const auto* from = reinterpret_cast<const uint8_t*>(blocks + 2 * i);
    const auto bits = hn::PromoteTo(du, hn::BitCast(d16, hn::LoadU(d8, from)));
    const auto value = hn::BitCast(tag, hn::ShiftLeft<16>(bits));
    hn::StoreU(kToHalf ? RoundToHalf(tag, value) : value, tag, out + i);
  });
}

template <bool kToHalf>
void DecodeOther(formats::DType dtype, const std::byte* blocks, float* out, size_t n) {
  if (dtype == formats::DType::F16) {
    HalvesToFloats(blocks, out, n);
  } else {
    formats::dtype_info(dtype).dequantize(blocks, out, n);
  }
  if (!kToHalf) return;
  ForEach(n, [&](auto tag, size_t i)
                 HWY_ATTR { hn::StoreU(RoundToHalf(tag, hn::LoadU(tag, out + i)), tag, out + i); });
}

template <bool kToHalf>
void DecodeAny(formats::DType dtype, const std::byte* blocks, float* out, size_t n) {
  switch (dtype) {
    case formats::DType::Q4_0:
      return DecodeQ4<kToHalf, 18>(blocks, out, n);
    case formats::DType::Q4_1:
      return DecodeQ4<kToHalf, 20>(blocks, out, n);
    case formats::DType::Q8_0:
      return DecodeQ8<kToHalf>(blocks, out, n);
    case formats::DType::BF16:
      return DecodeBf16<kToHalf>(blocks, out, n);
    default:
      return DecodeOther<kToHalf>(dtype, blocks, out, n);
  }
}

void DecodeRow(formats::DType dtype, const std::byte* blocks, float* out, size_t n, bool to_half) {
  return to_half ? DecodeAny<true>(dtype, blocks, out, n) : DecodeAny<false>(dtype, blocks, out, n);
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(DecodeRow);

void decode_row(formats::DType dtype, const std::byte* blocks, float* out, size_t n, bool to_half) {
  HWY_DYNAMIC_DISPATCH(DecodeRow)(dtype, blocks, out, n, to_half);
}

}  // namespace wisp::backend::cpu
#endif
