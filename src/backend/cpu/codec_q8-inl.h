// Block codecs for integer dot products, compiled once for each SIMD target. A codec has
//   kBlocks, kBytes       blocks of 32 weights in a unit, and the bytes of a unit
//   Codec(unit)           what the blocks of one unit share
//   kOffset               whether there are offsets: none, one a block, or one for each half
//   Factors(block)        {scale, offset, of first half, of second}: w = scale * q + offset; what
//                         kOffset does not name may be anything
//   Quants(block, i, ..)  q as 16-bit integers: elements i.. of the block's first and second half
#if defined(WISP_BACKEND_CPU_CODEC_Q8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_BACKEND_CPU_CODEC_Q8_INL_H_
#undef WISP_BACKEND_CPU_CODEC_Q8_INL_H_
#else
#define WISP_BACKEND_CPU_CODEC_Q8_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cmath>
#include <cstring>

#include "formats/codec_grids.h"
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

enum class Offset : uint8_t { none, block, halves };

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
  static constexpr Offset kOffset = Offset::none;
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
  static constexpr Offset kOffset = Offset::block;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const { return LoadHalves(unit); }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    const VecI16 bytes = LoadBytes(unit + 4 + i);
    first = hn::And(bytes, hn::Set(TagI16(), 15));
    second = hn::ShiftRight<4>(bytes);
  }
};

// Bits i.. of 16, as `value` where they are set.
HWY_INLINE VecI16 BitsAs(uint16_t bits, size_t i, int16_t value) {
  const TagI16 d;
  const VecI16 places = hn::Shl(hn::Set(d, 1), hn::Iota(d, static_cast<int16_t>(i)));
  const VecI16 set = hn::And(hn::Set(d, static_cast<int16_t>(bits)), places);
  return hn::IfThenElseZero(hn::Ne(set, hn::Zero(d)), hn::Set(d, value));
}

struct CodecQ5_0 {
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kBytes = 22;
  static constexpr Offset kOffset = Offset::none;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const { return LoadHalves(unit); }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    const TagI16 d;
    const VecI16 bytes = LoadBytes(unit + 6 + i);
    const VecI16 low = hn::Add(hn::And(bytes, hn::Set(d, 15)), BitsAs(Load16(unit + 2), i, 16));
    const VecI16 high = hn::Add(hn::ShiftRight<4>(bytes), BitsAs(Load16(unit + 4), i, 16));
    first = hn::Sub(low, hn::Set(d, 16));
    second = hn::Sub(high, hn::Set(d, 16));
  }
};

struct CodecQ5_1 {
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kBytes = 24;
  static constexpr Offset kOffset = Offset::block;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const { return LoadHalves(unit); }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    const TagI16 d;
    const VecI16 bytes = LoadBytes(unit + 8 + i);
    first = hn::Add(hn::And(bytes, hn::Set(d, 15)), BitsAs(Load16(unit + 4), i, 16));
    second = hn::Add(hn::ShiftRight<4>(bytes), BitsAs(Load16(unit + 6), i, 16));
  }
};

// Nibbles of the bytes from `from` on as the values of a codebook.
HWY_INLINE void LookUp(const std::array<int8_t, 16>& codebook, const uint8_t* from, VecI16& first,
                       VecI16& second) {
  const TagU8 du;
  const auto table = hn::LoadU(hn::FixedTag<int8_t, 16>(), codebook.data());
  const auto bytes = hn::LoadU(du, from);
  const auto low = hn::BitCast(TagI8(), hn::And(bytes, hn::Set(du, 15)));
  const auto high = hn::BitCast(TagI8(), hn::ShiftRight<4>(bytes));
  first = hn::PromoteTo(TagI16(), hn::TableLookupBytes(table, low));
  second = hn::PromoteTo(TagI16(), hn::TableLookupBytes(table, high));
}

struct CodecIQ4_NL {
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kBytes = 18;
  static constexpr Offset kOffset = Offset::none;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const { return LoadHalves(unit); }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    LookUp(formats::kIq4Levels, unit + 2 + i, first, second);
  }
};

struct CodecMXFP4 {
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kBytes = 17;
  static constexpr Offset kOffset = Offset::none;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const {
    return hn::Set(TagFactors(), std::ldexp(1.0F, unit[0] - 128));
  }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    LookUp(formats::kFp4Levels, unit + 1 + i, first, second);
  }
};

struct CodecQ8_0 {
  static constexpr size_t kBlocks = 1;
  static constexpr size_t kBytes = 34;
  static constexpr Offset kOffset = Offset::none;
  const uint8_t* unit;

  HWY_INLINE VecFactors Factors(size_t) const { return LoadHalves(unit); }
  HWY_INLINE void Quants(size_t, size_t i, VecI16& first, VecI16& second) const {
    const auto* quants = reinterpret_cast<const int8_t*>(unit + 2);
    first = hn::PromoteTo(TagI16(), hn::LoadU(TagI8(), quants + i));
    second = hn::PromoteTo(TagI16(), hn::LoadU(TagI8(), quants + 16 + i));
  }
};

// The layouts are drawn in formats/codec_kquant.cpp.
// Q4_K, and Q5_K, which has 32 bytes of upper bits after the scales.
template <bool kFiveBits>
struct CodecScaleMin {
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBytes = kFiveBits ? 176 : 144;
  static constexpr Offset kOffset = Offset::block;
  const uint8_t* unit;
  HWY_ALIGN float factors[8][4];

  explicit HWY_INLINE CodecScaleMin(const uint8_t* from) : unit(from) {
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
    const uint8_t* quants = unit + kBytes - 128 + block / 2 * 32 + i;
    first = LoadBytes(quants);
    second = LoadBytes(quants + 16);
    if (block % 2 == 0) {
      first = hn::And(first, hn::Set(TagI16(), 15));
      second = hn::And(second, hn::Set(TagI16(), 15));
    } else {
      first = hn::ShiftRight<4>(first);
      second = hn::ShiftRight<4>(second);
    }
    if (kFiveBits) {
      first = hn::Or(first, Upper(block, unit + 16 + i));
      second = hn::Or(second, Upper(block, unit + 32 + i));
    }
  }
  static HWY_INLINE VecI16 Upper(size_t block, const uint8_t* from) {
    const VecI16 bits = hn::ShiftRightSame(LoadBytes(from), static_cast<int>(block));
    return hn::ShiftLeft<4>(hn::And(bits, hn::Set(TagI16(), 1)));
  }
};
using CodecQ4_K = CodecScaleMin<false>;
using CodecQ5_K = CodecScaleMin<true>;

// Bit pairs of the 32 bytes of a group, of which four groups share each.
HWY_INLINE VecI16 Pairs(const uint8_t* from, size_t group) {
  const VecI16 bytes = hn::ShiftRightSame(LoadBytes(from), static_cast<int>(group % 4 * 2));
  return hn::And(bytes, hn::Set(TagI16(), 3));
}

// The 4-bit scales of 16 weights go into the quants, the minimums into offsets of the halves.
struct CodecQ2_K {
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBytes = 84;
  static constexpr Offset kOffset = Offset::halves;
  const uint8_t* unit;
  HWY_ALIGN float factors[8][4];

  explicit HWY_INLINE CodecQ2_K(const uint8_t* from) : unit(from) {
    const float scale = formats::f16_to_f32(Load16(from + 80));
    const float min = -formats::f16_to_f32(Load16(from + 82));
    for (size_t block = 0; block < 8; ++block) {
      factors[block][0] = scale;
      factors[block][1] = 0.0F;
      factors[block][2] = min * static_cast<float>(from[2 * block] >> 4);
      factors[block][3] = min * static_cast<float>(from[2 * block + 1] >> 4);
    }
  }
  HWY_INLINE VecFactors Factors(size_t block) const {
    return hn::Load(TagFactors(), factors[block]);
  }
  HWY_INLINE void Quants(size_t block, size_t i, VecI16& first, VecI16& second) const {
    const TagI16 d;
    const uint8_t* quants = unit + 16 + block / 4 * 32 + i;
    const uint8_t* scales = unit + 2 * block;
    first = hn::Mul(Pairs(quants, block), hn::Set(d, static_cast<int16_t>(scales[0] & 15)));
    second = hn::Mul(Pairs(quants + 16, block), hn::Set(d, static_cast<int16_t>(scales[1] & 15)));
  }
};

// As in Q6_K scales go into the quants.
struct CodecQ3_K {
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBytes = 110;
  static constexpr Offset kOffset = Offset::none;
  const uint8_t* unit;
  VecFactors scale;

  explicit HWY_INLINE CodecQ3_K(const uint8_t* from)
      : unit(from), scale(hn::Set(TagFactors(), formats::f16_to_f32(Load16(from + 108)))) {}

  HWY_INLINE VecFactors Factors(size_t) const { return scale; }
  // Scale j of 16, less 32.
  HWY_INLINE int16_t Scale(size_t j) const {
    const uint8_t* packed = unit + 96;
    const int low = packed[j % 8] >> (j / 8 * 4) & 15;
    const int high = packed[8 + j % 4] >> (j / 4 * 2) & 3;
    return static_cast<int16_t>((low | high << 4) - 32);
  }
  HWY_INLINE VecI16 Sixteen(size_t block, size_t i, int16_t by) const {
    const TagI16 d;
    const VecI16 upper = hn::ShiftRightSame(LoadBytes(unit + i), static_cast<int>(block));
    const VecI16 bit = hn::ShiftLeft<2>(hn::And(upper, hn::Set(d, 1)));
    const VecI16 q = hn::Or(Pairs(unit + 32 + block / 4 * 32 + i, block), bit);
    return hn::Mul(hn::Sub(q, hn::Set(d, 4)), hn::Set(d, by));
  }
  HWY_INLINE void Quants(size_t block, size_t i, VecI16& first, VecI16& second) const {
    first = Sixteen(block, i, Scale(2 * block));
    second = Sixteen(block, i + 16, Scale(2 * block + 1));
  }
};

struct CodecIQ4_XS {
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBytes = 136;
  static constexpr Offset kOffset = Offset::none;
  const uint8_t* unit;
  float scale;

  explicit HWY_INLINE CodecIQ4_XS(const uint8_t* from)
      : unit(from), scale(formats::f16_to_f32(Load16(from))) {}

  HWY_INLINE VecFactors Factors(size_t block) const {
    const int low = unit[4 + block / 2] >> (block % 2 * 4) & 15;
    const int high = Load16(unit + 2) >> (2 * block) & 3;
    return hn::Set(TagFactors(), scale * static_cast<float>((low | high << 4) - 32));
  }
  HWY_INLINE void Quants(size_t block, size_t i, VecI16& first, VecI16& second) const {
    LookUp(formats::kIq4Levels, unit + 8 + 16 * block + i, first, second);
  }
};

// The 8-bit scales of 16 weights go into the quants: (q - 32) * s fits 16 bits.
struct CodecQ6_K {
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBytes = 210;
  static constexpr Offset kOffset = Offset::none;
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
