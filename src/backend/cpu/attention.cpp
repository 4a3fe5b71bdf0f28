// Attention: softmax and weighted sums over fixed ranges of positions, merged in their order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "backend/cpu/attention_part.h"
#include "backend/cpu/dot-inl.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

// The page's tokens as floats: in place, or converted into `scratch`.
HWY_INLINE const float* PageFloats(const KvPages& kv, const std::byte* page, size_t width,
                                   float* scratch) {
  if (kv.dtype == formats::DType::F32) return reinterpret_cast<const float*>(page);
  HalvesToFloats(page, scratch, plan::kPageTokens * width);
  return scratch;
}

// Turns the scores of [begin, end) into exp(score - largest); returns largest and sum.
HWY_INLINE void Softmax(const plan::Attention& op, float* scores, size_t begin, size_t end,
                        float* largest, float* sum) {
  const hn::ScalableTag<float> d;
  const size_t n = end - begin;
  float* s = scores + begin;
  ForEach(n, [&](auto tag, size_t i) HWY_ATTR {
    auto v = hn::Mul(hn::LoadU(tag, s + i), hn::Set(tag, op.scale));
    if (op.softcap > 0.0F) {
      const auto cap = hn::Set(tag, op.softcap);
      const auto capped = hn::Mul(cap, hn::Tanh(tag, hn::Div(v, cap)));
      v = hn::IfThenElse(hn::Eq(v, v), capped, v);
    }
    hn::StoreU(v, tag, s + i);
  });
  float top = s[0];
  size_t i = 0;
  if (n >= hn::Lanes(d)) {
    auto tops = hn::LoadU(d, s);
    for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) tops = hn::Max(tops, hn::LoadU(d, s + i));
    top = hn::GetLane(hn::MaxOfLanes(d, tops));
  }
  for (; i < n; ++i) top = std::max(top, s[i]);
  ForEach(n, [&](auto tag, size_t at) HWY_ATTR {
    const auto v = hn::LoadU(tag, s + at);
    // Exp makes 0 of a NaN, which must stay one.
    const auto e = hn::Exp(tag, hn::Sub(v, hn::Set(tag, top)));
    hn::StoreU(hn::IfThenElse(hn::Eq(v, v), e, v), tag, s + at);
  });
  auto sums = hn::Zero(d);
  for (i = 0; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) sums = hn::Add(sums, hn::LoadU(d, s + i));
  float total = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) total += s[i];
  *largest = top;
  *sum = total;
}

// out[r] += sum over tokens t in [begin, end) of weights[r][t] * values[t], for kR rows and kV
// vectors of the width.
template <class D, size_t kR, size_t kV>
HWY_INLINE void AddValues(D d, const float* const* weights, FloatRows values, size_t begin,
                          size_t end, float* out, size_t out_stride) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V sums[kR][kV];
  HWY_UNROLL(8)
  for (size_t r = 0; r < kR; ++r) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kV; ++v) sums[r][v] = hn::LoadU(d, out + r * out_stride + v * lanes);
  }
  for (size_t t = begin; t < end; ++t) {
    V token[kV];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kV; ++v) token[v] = hn::LoadU(d, values.row(t) + v * lanes);
    HWY_UNROLL(8)
    for (size_t r = 0; r < kR; ++r) {
      const V weight = hn::Set(d, weights[r][t]);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kV; ++v) sums[r][v] = hn::MulAdd(weight, token[v], sums[r][v]);
    }
  }
  HWY_UNROLL(8)
  for (size_t r = 0; r < kR; ++r) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kV; ++v) hn::StoreU(sums[r][v], d, out + r * out_stride + v * lanes);
  }
}

template <size_t kR>
HWY_INLINE void AddPage(const float* const* weights, FloatRows values, size_t width, size_t begin,
                        size_t end, float* out, size_t out_stride) {
  const hn::ScalableTag<float> d;
  constexpr size_t kV = 4;
  const size_t lanes = hn::Lanes(d);
  const auto from = [&](size_t i) { return FloatRows{values.data + i, values.stride}; };
  size_t i = 0;
  for (; i + kV * lanes <= width; i += kV * lanes) {
    AddValues<decltype(d), kR, kV>(d, weights, from(i), begin, end, out + i, out_stride);
  }
  for (; i + lanes <= width; i += lanes) {
    AddValues<decltype(d), kR, 1>(d, weights, from(i), begin, end, out + i, out_stride);
  }
  const hn::CappedTag<float, 1> d1;
  for (; i < width; ++i) {
    AddValues<decltype(d1), kR, 1>(d1, weights, from(i), begin, end, out + i, out_stride);
  }
}

// The partial sums of the positions of one range. `scratch`: one page of floats, then
// rows * kRangeKeys scores.
void RangePartial(const AttentionPart& part, uint32_t range, float* scratch, float* partial) {
  const plan::KvLayer& shape = part.kv.shape;
  const uint32_t start = range * kRangeKeys;
  const uint32_t end = std::min(start + kRangeKeys, part.last_position() + 1);
  const uint32_t first = std::max(start, part.first_key(0)) / plan::kPageTokens;
  const uint32_t pages_end = (end + plan::kPageTokens - 1) / plan::kPageTokens;
  float* page_floats = scratch;
  float* scores = scratch + plan::kPageTokens * std::max(shape.head_dim, shape.value_dim);
  const uint32_t* pages = part.columns[0].pages;

  for (uint32_t page = first; page < pages_end; ++page) {
    const float* keys = PageFloats(part.kv, part.kv.key_page(pages[page], part.kv_head),
                                   shape.head_dim, page_floats);
    const size_t tokens = std::min(plan::kPageTokens, end - page * plan::kPageTokens);
    float* to = scores + page * plan::kPageTokens - start;
    for (size_t column = 0; column < part.count; ++column) {
      DotAll(FloatRows{keys, shape.head_dim}, tokens,
             FloatRows{part.q + column * part.q_stride, shape.head_dim}, part.group, shape.head_dim,
             [&](size_t token, size_t head, Vec4 dots, size_t count) HWY_ATTR {
               float* score = to + (column * part.group + head) * kRangeKeys + token;
               if (count == 4) {
                 hn::StoreU(dots, Tag4(), score);
               } else {
                 *score = hn::GetLane(dots);
               }
             });
    }
  }

  const size_t stride = 2 + shape.value_dim;
  std::memset(partial, 0, partial_floats(part) * sizeof(float));
  for (size_t row = 0; row < part.rows(); ++row) {
    const size_t column = row / part.group;
    const uint32_t low = std::max(start, part.first_key(column));
    const uint32_t high = std::min(end, part.columns[column].position + 1);
    float* sums = partial + row * stride;
    sums[0] = -HUGE_VALF;  // no key of the range is seen
    if (low >= high) continue;
    Softmax(part.op, scores + row * kRangeKeys, low - start, high - start, &sums[0], &sums[1]);
  }

  for (uint32_t page = first; page < pages_end; ++page) {
    const size_t value_stride = part.kv.value_stride();
    const FloatRows values{PageFloats(part.kv, part.kv.value_page(pages[page], part.kv_head),
                                      value_stride, page_floats),
                           value_stride};
    const uint32_t origin = page * plan::kPageTokens;
    for (size_t column = 0; column < part.count; ++column) {
      const uint32_t low = std::max(origin, part.first_key(column));
      const uint32_t high = std::min(origin + plan::kPageTokens, part.columns[column].position + 1);
      if (low >= high) continue;
      for (size_t head = 0; head < part.group;) {
        const size_t row = column * part.group + head;
        const float* weights[3];
        const size_t left = std::min<size_t>(3, part.group - head);
        for (size_t r = 0; r < left; ++r) {
          weights[r] = scores + (row + r) * kRangeKeys + origin - start;
        }
        float* out = partial + row * stride + 2;
        const auto add = left == 3 ? AddPage<3> : left == 2 ? AddPage<2> : AddPage<1>;
        add(weights, values, shape.value_dim, low - origin, high - origin, out, stride);
        head += left;
      }
    }
  }
}

// Adds the partial sums of a later range to `total`.
void MergePartial(const AttentionPart& part, const float* partial, float* total) {
  const size_t width = part.kv.shape.value_dim;
  for (size_t row = 0; row < part.rows(); ++row) {
    const float* from = partial + row * (2 + width);
    float* to = total + row * (2 + width);
    if (from[0] == -HUGE_VALF && from[1] == 0.0F) continue;
    if (to[0] == -HUGE_VALF && to[1] == 0.0F) {
      std::memcpy(to, from, (2 + width) * sizeof(float));
      continue;
    }
    const float top = std::max(to[0], from[0]);
    const float keep = std::exp(to[0] - top);
    const float add = std::exp(from[0] - top);
    to[0] = top;
    to[1] = to[1] * keep + from[1] * add;
    ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
      const auto old = hn::Mul(hn::LoadU(tag, to + 2 + i), hn::Set(tag, keep));
      const auto more = hn::Mul(hn::LoadU(tag, from + 2 + i), hn::Set(tag, add));
      hn::StoreU(hn::Add(old, more), tag, to + 2 + i);
    });
  }
}

// out[row] = weighted sum / sum of exponentials, that of the sink among them.
void FinishPart(const AttentionPart& part, const float* total, float* out, size_t out_stride) {
  const size_t width = part.kv.shape.value_dim;
  for (size_t row = 0; row < part.rows(); ++row) {
    const float* from = total + row * (2 + width);
    float* to = out + row / part.group * out_stride + row % part.group * width;
    float keep = 1.0F;
    float sum = from[1];
    if (part.sinks != nullptr) {
      const float sink = part.sinks[part.kv_head * part.group + row % part.group];
      const float top = std::max(from[0], sink);
      keep = std::exp(from[0] - top);
      sum = sum * keep + std::exp(sink - top);
    }
    ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
      const auto kept = hn::Mul(hn::LoadU(tag, from + 2 + i), hn::Set(tag, keep));
      hn::StoreU(hn::Div(kept, hn::Set(tag, sum)), tag, to + i);
    });
  }
}

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(RangePartial);
HWY_EXPORT(MergePartial);
HWY_EXPORT(FinishPart);

namespace {

struct Item {
  AttentionPart part;
  float* out = nullptr;
  size_t partials = 0;  // offset of its first range's partial in floats
  uint32_t first_range = 0;
  uint32_t end_range = 0;
};

// Pieces of at most `rows` rows: columns of one slot for one KV head.
std::vector<Item> make_items(const OpContext& context, const plan::Attention& op, size_t rows) {
  const KvPages& kv = context.kv[plan::index(op.kv_layer)];
  const size_t group = op.num_heads / kv.shape.num_kv_heads;
  const size_t most = std::max<size_t>(1, rows / group);
  const size_t q_stride = context.width(op.q);
  const size_t out_stride = context.width(op.out);
  std::vector<Item> items;
  const auto columns = context.columns;
  for (size_t first = 0; first < columns.size();) {
    size_t count = 1;
    while (count < most && first + count < columns.size() &&
           columns[first + count].slot == columns[first].slot) {
      ++count;
    }
    for (uint32_t head = 0; head < kv.shape.num_kv_heads; ++head) {
      const float* q = context.floats(op.q) + first * q_stride + head * group * kv.shape.head_dim;
      Item item{.part = {.op = op,
                         .kv = kv,
                         .columns = &columns[first],
                         .count = count,
                         .q = q,
                         .q_stride = q_stride,
                         .kv_head = head,
                         .group = group,
                         .sinks = context.vector(op.sinks)}};
      item.out = context.floats(op.out) + first * out_stride + head * group * kv.shape.value_dim;
      item.first_range = item.part.first_key(0) / kRangeKeys;
      item.end_range = item.part.last_position() / kRangeKeys + 1;
      items.push_back(item);
    }
    first += count;
  }
  return items;
}

// Enough floats for RangePartial's page and scores.
size_t scratch_floats(const AttentionPart& part) {
  const plan::KvLayer& shape = part.kv.shape;
  return plan::kPageTokens * std::max(shape.head_dim, shape.value_dim) + part.rows() * kRangeKeys;
}

// One item after another, all ranges of an item by one thread.
void run_whole(const OpContext& context, const plan::Attention& op, std::vector<Item>& items) {
  const auto body = [&](size_t begin, size_t end, size_t worker) {
    Buffer& memory = context.scratch.workers[worker];
    for (size_t i = begin; i < end; ++i) {
      const Item& item = items[i];
      const size_t partial_size = partial_floats(item.part);
      memory.reserve((scratch_floats(item.part) + 2 * partial_size) * sizeof(float));
      auto* total = reinterpret_cast<float*>(memory.data());
      float* partial = total + partial_size;
      float* scratch = partial + partial_size;
      HWY_DYNAMIC_DISPATCH(RangePartial)(item.part, item.first_range, scratch, total);
      for (uint32_t range = item.first_range + 1; range < item.end_range; ++range) {
        HWY_DYNAMIC_DISPATCH(RangePartial)(item.part, range, scratch, partial);
        HWY_DYNAMIC_DISPATCH(MergePartial)(item.part, partial, total);
      }
      HWY_DYNAMIC_DISPATCH(FinishPart)(item.part, total, item.out, context.width(op.out));
    }
  };
  context.pool.parallel_for(items.size(), 1, body);
}

// Every range of every item is a piece of work of its own; the merge follows.
void run_split(const OpContext& context, const plan::Attention& op, std::vector<Item>& items) {
  struct Piece {
    const Item* item;
    uint32_t range;
  };
  std::vector<Piece> pieces;
  size_t floats = 0;
  for (Item& item : items) {
    item.partials = floats;
    for (uint32_t range = item.first_range; range < item.end_range; ++range) {
      pieces.push_back({&item, range});
      floats += partial_floats(item.part);
    }
  }
  context.scratch.partials.reserve(floats * sizeof(float));
  auto* partials = reinterpret_cast<float*>(context.scratch.partials.data());
  const auto at = [&](const Item& item, uint32_t range) {
    return partials + item.partials + (range - item.first_range) * partial_floats(item.part);
  };
  context.pool.parallel_for(pieces.size(), 1, [&](size_t begin, size_t end, size_t worker) {
    Buffer& memory = context.scratch.workers[worker];
    for (size_t i = begin; i < end; ++i) {
      const auto [item, range] = pieces[i];
      memory.reserve(scratch_floats(item->part) * sizeof(float));
      HWY_DYNAMIC_DISPATCH(RangePartial)
      (item->part, range, reinterpret_cast<float*>(memory.data()), at(*item, range));
    }
  });
  for (const Item& item : items) {
    float* total = at(item, item.first_range);
    for (uint32_t range = item.first_range + 1; range < item.end_range; ++range) {
      HWY_DYNAMIC_DISPATCH(MergePartial)(item.part, at(item, range), total);
    }
    HWY_DYNAMIC_DISPATCH(FinishPart)(item.part, total, item.out, context.width(op.out));
  }
}

}  // namespace

void run_attention(const OpContext& context, const plan::Attention& op) {
  constexpr size_t kRows = 48;
  std::vector<Item> items = make_items(context, op, kRows);
  const bool few = items.size() < 4 * context.pool.size();
  const bool long_context = std::any_of(items.begin(), items.end(), [](const Item& item) {
    return item.end_range - item.first_range > 1;
  });
  if (few && long_context && context.pool.size() > 1) return run_split(context, op, items);
  run_whole(context, op, items);
}

}  // namespace wisp::backend::cpu
#endif
