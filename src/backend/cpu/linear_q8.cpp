// Linear with q8 inputs: exact integer sums over blocks of 32, scaled and added in f32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear_q8.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/highway.h>

#include <cstring>

#include "backend/cpu/codec_q8-inl.h"
#include "backend/cpu/linear_out.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/q8_columns.h"
#include "base/error.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

// Sums of one row of weights with kC columns. The lanes of a block's products stay apart until the
// end: even and odd blocks have an accumulator each, in f32, and the offsets a third one.
template <class Codec, size_t kC>
struct RowSums {
  using V = hn::Vec<TagF32>;
  V even[kC];
  V odd[kC];
  V offsets[kC];

  HWY_INLINE RowSums() {
    for (size_t c = 0; c < kC; ++c) even[c] = odd[c] = offsets[c] = hn::Zero(TagF32());
  }

  // `count` blocks of a group, which begins at block `first` of the columns from `column` on.
  HWY_INLINE void AddGroup(const uint8_t* group, size_t count, const Q8Columns& x, size_t column,
                           size_t first) {
    const TagF32 d;
    HWY_ALIGN float scale[8];
    HWY_ALIGN float offset[8];
    HWY_ALIGN float factors[kC][8];
    Codec::Scales(group, count, scale, offset);
    for (size_t c = 0; c < kC; ++c) {
      const size_t at = (column + c) * x.padded_blocks + first;
      for (size_t i = 0; i < 8; i += hn::Lanes(d)) {
        const V dx = hn::LoadU(d, x.scales + at + i);
        hn::Store(hn::Mul(hn::Load(d, scale + i), dx), d, factors[c] + i);
        if (Codec::kHasOffset) {
          offsets[c] =
              hn::MulAdd(hn::Load(d, offset + i), hn::LoadU(d, x.sums + at + i), offsets[c]);
        }
      }
    }
    const int16_t* quants = x.quants + column * x.width + first * 32;
    if (count == 8) {
      HWY_UNROLL(4)
      for (size_t block = 0; block < 8; block += 2) {
        AddBlock(group, block, quants, x.width, factors, even);
        AddBlock(group, block + 1, quants, x.width, factors, odd);
      }
    } else {
      for (size_t block = 0; block < count; ++block) {
        AddBlock(group, block, quants, x.width, factors, block % 2 == 0 ? even : odd);
      }
    }
  }

  static HWY_INLINE void AddBlock(const uint8_t* group, size_t block, const int16_t* quants,
                                  size_t stride, const float (&factors)[kC][8], V (&sums)[kC]) {
    const TagI16 d16;
    const TagI32 d32;
    hn::Vec<TagI32> products[kC];
    for (size_t c = 0; c < kC; ++c) products[c] = hn::Zero(d32);
    for (size_t i = 0; i < 16; i += hn::Lanes(d16)) {
      VecI16 first;
      VecI16 second;
      Codec::Quants(group, block, i, first, second);
      for (size_t c = 0; c < kC; ++c) {
        const int16_t* from = quants + c * stride + block * 32 + i;
        auto high = hn::Zero(d32);
        products[c] =
            hn::ReorderWidenMulAccumulate(d32, first, hn::LoadU(d16, from), products[c], high);
        products[c] = hn::ReorderWidenMulAccumulate(d32, second, hn::LoadU(d16, from + 16),
                                                    products[c], high);
        products[c] = hn::Add(products[c], high);
      }
    }
    const TagF32 d;
    for (size_t c = 0; c < kC; ++c) {
      sums[c] = hn::MulAdd(hn::ConvertTo(d, products[c]), hn::Set(d, factors[c][block]), sums[c]);
    }
  }

  HWY_INLINE float Total(size_t c) const {
    const TagF32 d;
    const V sum = hn::Add(even[c], odd[c]);
    return hn::GetLane(hn::SumOfLanes(d, Codec::kHasOffset ? hn::Add(sum, offsets[c]) : sum));
  }
};

template <class Codec, size_t kC>
HWY_INLINE void RowTimesColumns(const uint8_t* weights, size_t row, const Q8Columns& x,
                                size_t column, const LinearOut& out) {
  RowSums<Codec, kC> sums;
  const size_t blocks = x.width / 32;
  size_t block = 0;
  for (; block + 8 <= blocks; block += 8, weights += Codec::kGroupBytes) {
    sums.AddGroup(weights, 8, x, column, block);
  }
  if (block < blocks) sums.AddGroup(weights, blocks - block, x, column, block);
  for (size_t c = 0; c < kC; ++c) out.store(row, column + c, sums.Total(c));
}

template <class Codec>
void MultiplyRows(const WeightView& weight, size_t begin, size_t end, const Q8Columns& x,
                  const LinearOut& out) {
  for (size_t row = begin; row < end; ++row) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(weight.row(static_cast<uint32_t>(row)));
    size_t c = 0;
    for (; c + 4 <= x.count; c += 4) RowTimesColumns<Codec, 4>(bytes, row, x, c, out);
    for (; c + 2 <= x.count; c += 2) RowTimesColumns<Codec, 2>(bytes, row, x, c, out);
    for (; c < x.count; ++c) RowTimesColumns<Codec, 1>(bytes, row, x, c, out);
  }
}

void MultiplyQ8(const WeightView& weight, size_t begin, size_t end, const Q8Columns& x,
                const LinearOut& out) {
  switch (weight.dtype) {
    case formats::DType::Q4_0:
      return MultiplyRows<CodecQ4_0>(weight, begin, end, x, out);
    case formats::DType::Q4_1:
      return MultiplyRows<CodecQ4_1>(weight, begin, end, x, out);
    case formats::DType::Q8_0:
      return MultiplyRows<CodecQ8_0>(weight, begin, end, x, out);
    case formats::DType::Q4_K:
      return MultiplyRows<CodecQ4_K>(weight, begin, end, x, out);
    case formats::DType::Q6_K:
      return MultiplyRows<CodecQ6_K>(weight, begin, end, x, out);
    default:
      return ensure(false, "a weight type with integer products");
  }
}

// One row of a q8 value, see plan.h, into its place in `x`.
void SpreadRow(const std::byte* row, size_t width, int16_t* quants, float* scales, float* sums) {
  const hn::ScalableTag<int16_t> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const auto* bytes = reinterpret_cast<const int8_t*>(row);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(d8, bytes + i)), d, quants + i);
  }
  const auto* stored_scales = reinterpret_cast<const float*>(row + width);
  const auto* stored_sums = reinterpret_cast<const int32_t*>(row + width + width / 8);
  for (size_t b = 0; b < width / 32; ++b) {
    scales[b] = stored_scales[b];
    sums[b] = stored_scales[b] * static_cast<float>(stored_sums[b]);
  }
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(MultiplyQ8);
HWY_EXPORT(SpreadRow);

namespace {

Q8Columns spread(const OpContext& context, plan::ValueId id) {
  const size_t width = context.width(id);
  const size_t padded = (width / 32 + 7) / 8 * 8;
  const size_t count = context.rows(id);
  const size_t quant_bytes = count * width * sizeof(int16_t);
  const size_t scale_bytes = count * padded * sizeof(float);
  Buffer& memory = context.scratch.shared;
  memory.reserve(quant_bytes + 2 * scale_bytes);
  auto* quants = reinterpret_cast<int16_t*>(memory.data());
  auto* scales = reinterpret_cast<float*>(memory.data() + quant_bytes);
  auto* sums = reinterpret_cast<float*>(memory.data() + quant_bytes + scale_bytes);
  std::memset(scales, 0, 2 * scale_bytes);
  const size_t stride = plan::row_bytes(context.plan[id]);
  const std::byte* rows = context.bytes(id);
  const auto spread_row = HWY_DYNAMIC_DISPATCH(SpreadRow);
  for_rows(context, count, width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) {
      spread_row(rows + row * stride, width, quants + row * width, scales + row * padded,
                 sums + row * padded);
    }
  });
  return {quants, scales, sums, width, padded, count};
}

}  // namespace

void run_linear_q8(const OpContext& context, const plan::Linear& op) {
  const WeightView& weight = context[op.weight];
  const Q8Columns x = spread(context, op.x);
  const LinearOut out(context, op);
  const auto multiply = HWY_DYNAMIC_DISPATCH(MultiplyQ8);
  context.pool.parallel_for(
      weight.rows, row_grain(context, weight),
      [&](size_t begin, size_t end, size_t) { multiply(weight, begin, end, x, out); });
}

}  // namespace wisp::backend::cpu
#endif
