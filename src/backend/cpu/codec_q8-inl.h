// Block codecs for integer dot products, compiled once for each SIMD target. A codec has
//   kBlocks, kBytes       blocks of 32 weights in a unit, and the bytes of a unit
//   Codec(unit)           what the blocks of one unit share
//   Factors(block)        {scale, offset, any, any}: w = scale * q + offset; kHasOffset: not 0
//   Quants(block, i, ..)  q as 16-bit integers: elements i.. of the block's first and second half
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

using TagFactors = hn::CappedTag<float, 4>;
using VecFactors = hn::Vec<TagFactors>;

// Four halves in a row: a block's scale and offset, or whatever follows the scale.
HWY_INLINE VecFactors LoadHalves(const uint8_t* from) {
  const hn::Rebind<hwy::float16_t, TagFactors> dh;
  const hn::Repartition<uint8_t, decltype(dh)> db;
  return hn::PromoteTo(TagFactors(), hn::BitCast(dh, hn::LoadU(db, from)));
}

struct CodecQ4_0 {
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kBytes = 18;
  static constexpr bool kHasOffset = false;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const { return LoadHalves(unit); }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    const TagI16 d;
    const VecI16 bytes = LoadBytes(unit + 2 + i);
    first = hn::Sub(hn::And(bytes, hn::Set(d, 15)), hn::Set(d, 8));
    second = hn::Sub(hn::ShiftRight<4>(bytes), hn::Set(d, 8));
  }
};

struct CodecQ4_1 {
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kBytes = 20;
  static constexpr bool kHasOffset = true;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const { return LoadHalves(unit); }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    const VecI16 bytes = LoadBytes(unit + 4 + i);
    first = hn::And(bytes, hn::Set(TagI16(), 15));
    second = hn::ShiftRight<4>(bytes);
  }
};

struct CodecQ8_0 {
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kBytes = 34;
  static constexpr bool kHasOffset = false;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const { return LoadHalves(unit); }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    const auto* quants = reinterpret_cast<const int8_t*>(unit + 2);
    first = hn::PromoteTo(TagI16(), hn::LoadU(TagI8(), quants + i));
    second = hn::PromoteTo(TagI16(), hn::LoadU(TagI8(), quants + 16 + i));
  }
};

// The layouts are drawn in formats/codec_kquant.cpp.
struct CodecQ4_K {
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBytes = 144;
  static constexpr bool kHasOffset = true;
  const uint8_t* unit;
  HWY_ALIGN float factors[8][4];

  explicit HWY_INLINE CodecQ4_K(const uint8_t* from) : unit(from) {
    const float scale = formats::f16_to_f32(Load16(from));
    const float min = -formats::f16_to_f32(Load16(from + 2));
    uint32_t packed[3];
    std::memcpy(packed, from + 4, sizeof packed);
    const uint32_t scales[2] = {packed[0] & 0x3f3f3f3f,
                                (packed[2] & 0x0f0f0f0f) | (packed[0] >> 6 & 0x03030303) << 4};
    const uint32_t mins[2] = {packed[1] & 0x3f3f3f3f,
                              (packed[2] >> 4 & 0x0f0f0f0f) | (packed[1] >> 6 & 0x03030303) << 4};
    for (size_t half = 0; half < 2; ++half) {
      Interleave(Bytes(scales[half], scale), Bytes(mins[half], min), factors + 4 * half);
    }
  }
  // The four bytes of a word times a factor.
  static HWY_INLINE VecFactors Bytes(uint32_t word, float factor) {
    const hn::Rebind<int32_t, TagFactors> di;
    const hn::Rebind<uint8_t, TagFactors> du;
    HWY_ALIGN uint8_t bytes[16];
    std::memcpy(bytes, &word, sizeof word);
    const auto numbers = hn::ConvertTo(TagFactors(), hn::PromoteTo(di, hn::Load(du, bytes)));
    return hn::Mul(numbers, hn::Set(TagFactors(), factor));
  }
  static HWY_INLINE void Interleave(VecFactors scales, VecFactors offsets, float (*to)[4]) {
    const TagFactors d;
    const VecFactors low = hn::InterleaveLower(d, scales, offsets);
    const VecFactors high = hn::InterleaveUpper(d, scales, offsets);
    hn::Store(low, d, to[0]);
    hn::Store(hn::Shuffle1032(low), d, to[1]);
    hn::Store(high, d, to[2]);
    hn::Store(hn::Shuffle1032(high), d, to[3]);
  }

  HWY_INLINE VecFactors Factors(size_t block) const {
    return hn::Load(TagFactors(), factors[block]);
  }
  HWY_INLINE void Quants(size_t block, size_t i, VecI16& first, VecI16& second) const {
    const uint8_t* quants = unit + 16 + block / 2 * 32 + i;
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
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBytes = 210;
  static constexpr bool kHasOffset = false;
  const uint8_t* unit;
  VecFactors scale;

  explicit HWY_INLINE CodecQ6_K(const uint8_t* from)
      : unit(from), scale(hn::Set(TagFactors(), formats::f16_to_f32(Load16(from + 208)))) {}

  HWY_INLINE VecFactors Factors(size_t) const { return scale; }
  static HWY_INLINE VecI16 Sixteen(const uint8_t* low, const uint8_t* high, size_t k,
                                   int8_t scale) {
    const TagI16 d;
    const VecI16 bytes = LoadBytes(low);
    const VecI16 nibble = k < 2 ? hn::And(bytes, hn::Set(d, 15)) : hn::ShiftRight<4>(bytes);
    const VecI16 pair =
        hn::And(hn::ShiftRightSame(LoadBytes(high), static_cast<int>(2 * k)), hn::Set(d, 3));
    const VecI16 q = hn::Sub(hn::Or(nibble, hn::ShiftLeft<4>(pair)), hn::Set(d, 32));
    return hn::Mul(q, hn::Set(d, int16_t{scale}));
  }
  HWY_INLINE void Quants(size_t block, size_t i, VecI16& first, VecI16& second) const {
    const size_t half = block / 4;
    const size_t k = block % 4;
    const uint8_t* low = unit + 64 * half + 32 * (k % 2) + i;
    const uint8_t* high = unit + 128 + 32 * half + i;
    const auto* scales = reinterpret_cast<const int8_t*>(unit + 192 + 2 * block);
    first = Sixteen(low, high, k, scales[0]);
    second = Sixteen(low + 16, high + 16, k, scales[1]);
  }
};

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
