// RopeKv: per-head norms, rotation, and the write into the KV pages.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rope_kv.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "backend/cpu/head_rule.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

void NormHead(const HeadRule& rule, const float* x, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    sum = hn::MulAdd(v, v, sum);
  }
  float square = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) square += x[i] * x[i];
  const float factor = 1.0F / std::sqrt(square / static_cast<float>(n) + rule.norm_eps);
  ForEach(n, [&](auto tag, size_t at) HWY_ATTR {
    const auto weight = hn::Add(hn::LoadU(tag, rule.norm + at), hn::Set(tag, rule.norm_offset));
    const auto scaled = hn::Mul(hn::LoadU(tag, x + at), hn::Set(tag, factor));
    hn::StoreU(hn::Mul(scaled, weight), tag, out + at);
  });
}

// Rotates the first rotary_dim elements of `head` in place.
void RotateHalf(const HeadRule& rule, float* head) {
  const size_t pairs = rule.rotary_dim / 2;
  const hn::ScalableTag<float> d;
  float* first = head;
  float* second = head + pairs;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= pairs; i += hn::Lanes(d)) {
    hn::Vec<decltype(d)> cosine;
    hn::Vec<decltype(d)> sine;
    hn::LoadInterleaved2(d, rule.rope + 2 * i, cosine, sine);
    const auto a = hn::LoadU(d, first + i);
    const auto b = hn::LoadU(d, second + i);
    hn::StoreU(hn::Sub(hn::Mul(a, cosine), hn::Mul(b, sine)), d, first + i);
    hn::StoreU(hn::Add(hn::Mul(b, cosine), hn::Mul(a, sine)), d, second + i);
  }
  for (; i < pairs; ++i) {
    const float a = first[i];
    const float b = second[i];
    first[i] = a * rule.rope[2 * i] - b * rule.rope[2 * i + 1];
    second[i] = b * rule.rope[2 * i] + a * rule.rope[2 * i + 1];
  }
}

void RotateInterleaved(const HeadRule& rule, float* head) {
  for (size_t i = 0; i < rule.rotary_dim; i += 2) {
    const float a = head[i];
    const float b = head[i + 1];
    head[i] = a * rule.rope[i] - b * rule.rope[i + 1];
    head[i + 1] = b * rule.rope[i] + a * rule.rope[i + 1];
  }
}

void TurnHead(const HeadRule& rule, const float* x, float* out, size_t head_dim) {
  if (rule.norm != nullptr) {
    NormHead(rule, x, out, head_dim);
  } else {
    std::memcpy(out, x, head_dim * sizeof(float));
  }
  if (rule.rope != nullptr) {
    if (rule.style == plan::RopeStyle::half) {
      RotateHalf(rule, out);
    } else {
      RotateInterleaved(rule, out);
    }
  }
  if (rule.scale != 1.0F) {
    ForEach(head_dim, [&](auto tag, size_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(tag, out + i), hn::Set(tag, rule.scale)), tag, out + i);
    });
  }
}

void StoreHalves(const float* values, uint16_t* out, size_t n) { FloatsToHalves(values, out, n); }

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(TurnHead);
HWY_EXPORT(StoreHalves);

namespace {

// Writes one head of one token, `width` elements, into its page.
void store_token(const KvPages& kv, const float* values, std::byte* page, uint32_t token,
                 uint32_t width) {
  std::byte* to = page + uint64_t{token} * width * kv.element_bytes();
  if (kv.dtype == formats::DType::F16) {
    HWY_DYNAMIC_DISPATCH(StoreHalves)(values, reinterpret_cast<uint16_t*>(to), width);
  } else {
    std::memcpy(to, values, width * sizeof(float));
  }
}

void turn_column(const OpContext& context, const plan::RopeKv& op, size_t row, float* scratch) {
  const KvPages& kv = context.kv[plan::index(op.kv_layer)];
  const uint32_t head_dim = kv.shape.head_dim;
  const ColumnView& column = context.columns[row];
  const auto turn = HWY_DYNAMIC_DISPATCH(TurnHead);
  HeadRule rule{.norm = context.vector(op.q_norm),
                .norm_eps = op.norm_eps,
                .norm_offset = op.norm_weight_offset,
                .style = op.style};
  if (op.rope) {
    rule.rope = context[*op.rope].floats(column.position);
    rule.rotary_dim = context[*op.rope].cols;
  }
  if (op.query_scale) rule.scale = *context[*op.query_scale].floats(column.position);
  const float* from = context.floats(op.qkv) + row * context.width(op.qkv);
  float* out = context.floats(op.out) + row * context.width(op.out);
  for (uint32_t head = 0; head < op.num_heads; ++head, from += head_dim, out += head_dim) {
    turn(rule, from, out, head_dim);
  }
  rule.norm = context.vector(op.k_norm);
  rule.scale = 1.0F;
  const uint32_t page = column.pages[column.position / plan::kPageTokens];
  const uint32_t token = column.position % plan::kPageTokens;
  for (uint32_t head = 0; head < kv.shape.num_kv_heads; ++head, from += head_dim) {
    turn(rule, from, scratch, head_dim);
    store_token(kv, scratch, kv.key_page(page, head), token, head_dim);
  }
  const uint32_t value_dim = kv.shape.value_dim;
  for (uint32_t head = 0; head < kv.shape.num_kv_heads; ++head, from += value_dim) {
    store_token(kv, from, kv.value_page(page, head), token, value_dim);
  }
}

}  // namespace

void run_rope_kv(const OpContext& context, const plan::RopeKv& op) {
  const size_t head_bytes = context.kv[plan::index(op.kv_layer)].shape.head_dim * sizeof(float);
  for_rows(context, context.columns.size(), size_t{2} * context.width(op.qkv),
           [&](size_t begin, size_t end, size_t worker) {
             Buffer& scratch = context.scratch.workers[worker];
             scratch.reserve(head_bytes);
             for (size_t row = begin; row < end; ++row) {
               turn_column(context, op, row, reinterpret_cast<float*>(scratch.data()));
             }
           });
}

}  // namespace wisp::backend::cpu
#endif
