// Block codecs for integer dot products, compiled once for each SIMD target. A group is 8 blocks of
// 32 weights, or one super-block of 256. Each codec tells
//   kGroupBytes, kBlocks    of a full group, and how many blocks of 32 it may be short of
//   Scales                  for each block, the factor of the integer sum and (kHasOffset) that of
//                           the sum of x, so that w = scale * q + offset
//   Quants                  16-bit integers: elements i.. of the block's first and second half
#if defined(WISP_BACKEND_CPU_CODEC_Q8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_BACKEND_CPU_CODEC_Q8_INL_H_
#undef WISP_BACKEND_CPU_CODEC_Q8_INL_H_
#else
#define WISP_BACKEND_CPU_CODEC_Q8_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "formats/half.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes: half a block.
using TagI16 = hn::CappedTag<int16_t, 16>;
using TagI32 = hn::RepartitionToWide<TagI16>;
using TagF32 = hn::RebindToFloat<TagI32>;
using TagU8 = hn::Rebind<uint8_t, TagI16>;
using TagI8 = hn::Rebind<int8_t, TagI16>;
using VecI16 = hn::Vec<TagI16>;

HWY_INLINE VecI16 LoadBytes(const uint8_t* from) {
  return hn::PromoteTo(TagI16(), hn::LoadU(TagU8(), from));
}

HWY_INLINE uint16_t Load16(const uint8_t* from) {
  uint16_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// 8 halves at a stride, in two u64 so that no narrow stores precede a wide load; past `count`: 0.
template <size_t kStride>
HWY_INLINE void GatherHalves(const uint8_t* from, size_t count, float* out) {
  uint64_t packed[2] = {0, 0};
  if (count == 8) {
    for (size_t i = 0; i < 8; ++i) {
      packed[i / 4] |= uint64_t{Load16(from + i * kStride)} << (i % 4 * 16);
    }
  } else {
    for (size_t i = 0; i < count; ++i) {
      packed[i / 4] |= uint64_t{Load16(from + i * kStride)} << (i % 4 * 16);
    }
  }
  const hn::CappedTag<float, 8> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  HWY_ALIGN uint16_t halves[8];
  std::memcpy(halves, packed, sizeof halves);
  for (size_t i = 0; i < 8; i += hn::Lanes(d)) {
    // As formats::f16_to_f32: in the f32 fields the value is 2^112 too small.
    const auto bits = hn::PromoteTo(du, hn::Load(d16, halves + i));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fff));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    const auto value = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 0x1p112F));
    const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(du, 0x7f800000));
    const auto is_special = hn::Gt(hn::BitCast(hn::RebindToSigned<decltype(d)>(), magnitude),
                                   hn::Set(hn::RebindToSigned<decltype(d)>(), 0x7bff));
    const auto result =
        hn::IfThenElse(hn::RebindMask(d, is_special), hn::BitCast(d, special), value);
    hn::Store(hn::BitCast(d, hn::Or(hn::BitCast(du, result), sign)), d, out + i);
  }
}

struct CodecQ4_0 {
  static constexpr size_t kGroupBytes = 8 * 18;
  static constexpr bool kHasOffset = true;
  static HWY_INLINE void Scales(const uint8_t* group, size_t count, float* scale, float* offset) {
    GatherHalves<18>(group, count, scale);
    for (size_t i = 0; i < 8; ++i) offset[i] = -8.0F * scale[i];
  }
  static HWY_INLINE void Quants(const uint8_t* group, size_t block, size_t i, VecI16& first,
                                VecI16& second) {
    const VecI16 bytes = LoadBytes(group + block * 18 + 2 + i);
    first = hn::And(bytes, hn::Set(TagI16(), 15));
    second = hn::ShiftRight<4>(bytes);
  }
};

struct CodecQ4_1 {
  static constexpr size_t kGroupBytes = 8 * 20;
  static constexpr bool kHasOffset = true;
  static HWY_INLINE void Scales(const uint8_t* group, size_t count, float* scale, float* offset) {
    GatherHalves<20>(group, count, scale);
    GatherHalves<20>(group + 2, count, offset);
  }
  static HWY_INLINE void Quants(const uint8_t* group, size_t block, size_t i, VecI16& first,
                                VecI16& second) {
    const VecI16 bytes = LoadBytes(group + block * 20 + 4 + i);
    first = hn::And(bytes, hn::Set(TagI16(), 15));
    second = hn::ShiftRight<4>(bytes);
  }
};

struct CodecQ8_0 {
  static constexpr size_t kGroupBytes = 8 * 34;
  static constexpr bool kHasOffset = false;
  static HWY_INLINE void Scales(const uint8_t* group, size_t count, float* scale, float*) {
    GatherHalves<34>(group, count, scale);
  }
  static HWY_INLINE void Quants(const uint8_t* group, size_t block, size_t i, VecI16& first,
                                VecI16& second) {
    const auto* quants = reinterpret_cast<const int8_t*>(group + block * 34 + 2);
    first = hn::PromoteTo(TagI16(), hn::LoadU(TagI8(), quants + i));
    second = hn::PromoteTo(TagI16(), hn::LoadU(TagI8(), quants + 16 + i));
  }
};

// The layouts are drawn in formats/codec_kquant.cpp.
struct CodecQ4_K {
  static constexpr size_t kGroupBytes = 144;
  static constexpr bool kHasOffset = true;
  static HWY_INLINE void Scales(const uint8_t* group, size_t, float* scale, float* offset) {
    const float d = formats::f16_to_f32(Load16(group));
    const float dmin = -formats::f16_to_f32(Load16(group + 2));
    const uint8_t* packed = group + 4;
    for (size_t i = 0; i < 4; ++i) {
      scale[i] = d * static_cast<float>(packed[i] & 63);
      offset[i] = dmin * static_cast<float>(packed[i + 4] & 63);
      scale[i + 4] = d * static_cast<float>((packed[i + 8] & 15) | packed[i] >> 6 << 4);
      offset[i + 4] = dmin * static_cast<float>(packed[i + 8] >> 4 | packed[i + 4] >> 6 << 4);
    }
  }
  static HWY_INLINE void Quants(const uint8_t* group, size_t block, size_t i, VecI16& first,
                                VecI16& second) {
    const uint8_t* quants = group + 16 + block / 2 * 32 + i;
    first = LoadBytes(quants);
    second = LoadBytes(quants + 16);
    if (block % 2 == 0) {
      first = hn::And(first, hn::Set(TagI16(), 15));
      second = hn::And(second, hn::Set(TagI16(), 15));
    } else {
      first = hn::ShiftRight<4>(first);
      second = hn::ShiftRight<4>(second);
    }
  }
};

// The 8-bit scales of 16 weights go into the quants: (q - 32) * s fits 16 bits.
struct CodecQ6_K {
  static constexpr size_t kGroupBytes = 210;
  static constexpr bool kHasOffset = false;
  static HWY_INLINE void Scales(const uint8_t* group, size_t, float* scale, float*) {
    const float d = formats::f16_to_f32(Load16(group + 208));
    for (size_t i = 0; i < 8; ++i) scale[i] = d;
  }
  static HWY_INLINE VecI16 Sixteen(const uint8_t* low, const uint8_t* high, size_t k,
                                   int8_t scale) {
    const TagI16 d;
    const VecI16 nibble =
        k < 2 ? hn::And(LoadBytes(low), hn::Set(d, 15)) : hn::ShiftRight<4>(LoadBytes(low));
    const VecI16 pair =
        hn::And(hn::ShiftRightSame(LoadBytes(high), static_cast<int>(2 * k)), hn::Set(d, 3));
    const VecI16 q = hn::Sub(hn::Or(nibble, hn::ShiftLeft<4>(pair)), hn::Set(d, 32));
    return hn::Mul(q, hn::Set(d, int16_t{scale}));
  }
  static HWY_INLINE void Quants(const uint8_t* group, size_t block, size_t i, VecI16& first,
                                VecI16& second) {
    const size_t half = block / 4;
    const size_t k = block % 4;
    const uint8_t* low = group + 64 * half + 32 * (k % 2) + i;
    const uint8_t* high = group + 128 + 32 * half + i;
    const auto* scales = reinterpret_cast<const int8_t*>(group + 192 + 2 * block);
    first = Sixteen(low, high, k, scales[0]);
    second = Sixteen(low + 16, high + 16, k, scales[1]);
  }
};

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
