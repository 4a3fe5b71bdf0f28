// Linear with q8 inputs: exact integer sums over blocks of 32, scaled and added in f32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear_q8.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/highway.h>

#include <cstring>
#include <vector>

#include "backend/cpu/codec_q8-inl.h"
#include "backend/cpu/decode.h"
#include "backend/cpu/linear_out.h"
#include "backend/cpu/multiply.h"
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
  VecFactors offsets[kC];  // lane 1, or 2 and 3

  HWY_INLINE RowSums() {
    for (size_t c = 0; c < kC; ++c) {
      even[c] = odd[c] = hn::Zero(TagF32());
      offsets[c] = hn::Zero(TagFactors());
    }
  }

  // Block `block` of a unit, which is block `at` of the row.
  HWY_INLINE void AddBlock(const Codec& codec, size_t block, size_t at, const Q8Columns& x,
                           size_t column, V (&sums)[kC]) {
    const TagI16 d16;
    const TagI32 d32;
    const TagF32 d;
    hn::Vec<TagI32> products[kC];
    for (size_t c = 0; c < kC; ++c) products[c] = hn::Zero(d32);
    const int16_t* quants = x.quants + column * x.width + at * 32;
    for (size_t i = 0; i < 16; i += hn::Lanes(d16)) {
      VecI16 first;
      VecI16 second;
      codec.Quants(block, i, first, second);
      for (size_t c = 0; c < kC; ++c) {
        const int16_t* from = quants + c * x.width + i;
        auto low = products[c];
        auto high = hn::Zero(d32);
        low = hn::ReorderWidenMulAccumulate(d32, first, hn::LoadU(d16, from), low, high);
        low = hn::ReorderWidenMulAccumulate(d32, second, hn::LoadU(d16, from + 16), low, high);
        products[c] = hn::Add(low, high);
      }
    }
    const VecFactors factors = codec.Factors(block);
    const float* x_factors = x.factors + (column * x.blocks() + at) * 4;
    for (size_t c = 0; c < kC; ++c) {
      const VecFactors of_column = hn::Load(TagFactors(), x_factors + c * x.blocks() * 4);
      if (Codec::kOffset != Offset::none) offsets[c] = hn::MulAdd(factors, of_column, offsets[c]);
      const float scale = hn::GetLane(hn::Mul(factors, of_column));
      sums[c] = hn::MulAdd(hn::ConvertTo(d, products[c]), hn::Set(d, scale), sums[c]);
    }
  }

  HWY_INLINE void AddRow(const uint8_t* weights, const Q8Columns& x, size_t column) {
    const size_t blocks = x.blocks();
    size_t at = 0;
    if constexpr (Codec::kBlocks == 1) {
      for (; at + 2 <= blocks; at += 2, weights += 2 * Codec::kBytes) {
        AddBlock(Codec{weights}, 0, at, x, column, even);
        AddBlock(Codec{weights + Codec::kBytes}, 0, at + 1, x, column, odd);
      }
      if (at < blocks) AddBlock(Codec{weights}, 0, at, x, column, even);
    } else {
      for (; at < blocks; at += Codec::kBlocks, weights += Codec::kBytes) {
        const Codec codec(weights);
        HWY_UNROLL(4)
        for (size_t block = 0; block < Codec::kBlocks; block += 2) {
          AddBlock(codec, block, at + block, x, column, even);
          AddBlock(codec, block + 1, at + block + 1, x, column, odd);
        }
      }
    }
  }

  HWY_INLINE float Total(size_t c) const {
    const TagF32 d;
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[c], odd[c])));
    if (Codec::kOffset == Offset::none) return sum;
    HWY_ALIGN float lanes[4];
    hn::Store(offsets[c], TagFactors(), lanes);
    return sum + (Codec::kOffset == Offset::block ? lanes[1] : lanes[2] + lanes[3]);
  }
};

template <class Codec, size_t kC>
HWY_INLINE void RowTimesColumns(const uint8_t* weights, size_t row, const Q8Columns& x,
                                size_t column, const LinearOut& out) {
  RowSums<Codec, kC> sums;
  sums.AddRow(weights, x, column);
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

// Types without integer products: rows as floats times the quants.
void MultiplyDecoded(const WeightView& weight, size_t begin, size_t end, const Q8Columns& x,
                     const LinearOut& out) {
  const TagF32 d;
  const hn::Rebind<int16_t, TagF32> d16;
  std::vector<float> decoded(weight.cols);
  for (size_t row = begin; row < end; ++row) {
    decode_row(weight.dtype, weight.row(static_cast<uint32_t>(row)), decoded.data(), weight.cols,
               false);
    for (size_t c = 0; c < x.count; ++c) {
      auto sum = hn::Zero(d);
      for (size_t block = 0; block < x.blocks(); ++block) {
        const float* w = decoded.data() + block * 32;
        const int16_t* quants = x.quants + c * x.width + block * 32;
        auto products = hn::Zero(d);
        for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
          const auto q = hn::ConvertTo(d, hn::PromoteTo(TagI32(), hn::LoadU(d16, quants + i)));
          products = hn::MulAdd(hn::LoadU(d, w + i), q, products);
        }
        sum = hn::MulAdd(products, hn::Set(d, x.factors[(c * x.blocks() + block) * 4]), sum);
      }
      out.store(row, c, hn::GetLane(hn::SumOfLanes(d, sum)));
    }
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
    case formats::DType::Q5_0:
      return MultiplyRows<CodecQ5_0>(weight, begin, end, x, out);
    case formats::DType::Q5_1:
      return MultiplyRows<CodecQ5_1>(weight, begin, end, x, out);
    case formats::DType::IQ4_NL:
      return MultiplyRows<CodecIQ4_NL>(weight, begin, end, x, out);
    case formats::DType::MXFP4:
      return MultiplyRows<CodecMXFP4>(weight, begin, end, x, out);
    case formats::DType::Q2_K:
      return MultiplyRows<CodecQ2_K>(weight, begin, end, x, out);
    case formats::DType::Q3_K:
      return MultiplyRows<CodecQ3_K>(weight, begin, end, x, out);
    case formats::DType::Q5_K:
      return MultiplyRows<CodecQ5_K>(weight, begin, end, x, out);
    case formats::DType::IQ4_XS:
      return MultiplyRows<CodecIQ4_XS>(weight, begin, end, x, out);
    default:
      return MultiplyDecoded(weight, begin, end, x, out);
  }
}

// Quants and pairs of a q8 row, see plan.h, into their place in Q8Columns.
void Spread(const int8_t* from, const std::byte* pairs, size_t width, int16_t* quants,
            float* factors) {
  const hn::CappedTag<int16_t, 16> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  for (size_t i = 0; i < width; i += hn::Lanes(d)) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(d8, from + i)), d, quants + i);
  }
  const auto* scales = reinterpret_cast<const float*>(pairs);
  const auto* sums = reinterpret_cast<const int32_t*>(pairs);
  for (size_t b = 0; b < width / 32; ++b, factors += 4) {
    factors[0] = scales[2 * b];
    factors[1] = scales[2 * b] * static_cast<float>(sums[2 * b + 1]);
    int32_t first = 0;
    for (size_t i = 0; i < 16; ++i) first += from[b * 32 + i];
    factors[2] = scales[2 * b] * static_cast<float>(first);
    factors[3] = scales[2 * b] * static_cast<float>(sums[2 * b + 1] - first);
  }
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(MultiplyQ8);
HWY_EXPORT(Spread);

namespace {

Q8Columns spread(const OpContext& context, plan::ValueId id) {
  Q8Columns x;
  x.width = context.width(id);
  x.count = context.rows(id);
  const size_t factor_bytes = x.count * x.blocks() * 4 * sizeof(float);
  Buffer& memory = context.scratch.shared;
  memory.reserve(factor_bytes + x.count * x.width * sizeof(int16_t));
  auto* factors = reinterpret_cast<float*>(memory.data());
  auto* quants = reinterpret_cast<int16_t*>(memory.data() + factor_bytes);
  const size_t stride = plan::row_bytes(context.plan[id]);
  const std::byte* rows = context.bytes(id);
  for_rows(context, x.count, x.width, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) {
      spread_q8(rows + row * stride, x.width, 0, x.width, quants + row * x.width,
                factors + row * x.blocks() * 4);
    }
  });
  x.factors = factors;
  x.quants = quants;
  return x;
}

}  // namespace

void multiply_q8(const WeightView& weight, size_t begin, size_t end, const Q8Columns& x,
                 const LinearOut& out) {
  HWY_DYNAMIC_DISPATCH(MultiplyQ8)(weight, begin, end, x, out);
}

void spread_q8(const std::byte* row, size_t row_width, size_t first, size_t width, int16_t* quants,
               float* factors) {
  const auto* from = reinterpret_cast<const int8_t*>(row) + first;
  HWY_DYNAMIC_DISPATCH(Spread)(from, row + row_width + first / 4, width, quants, factors);
}

void run_linear_q8(const OpContext& context, const plan::Linear& op) {
  const WeightView& weight = context[op.weight];
  const Q8Columns x = spread(context, op.x);
  const LinearOut out(context, op);
  context.pool.parallel_for(
      weight.rows, row_grain(context, weight),
      [&](size_t begin, size_t end, size_t) { multiply_q8(weight, begin, end, x, out); });
}

}  // namespace wisp::backend::cpu
#endif
