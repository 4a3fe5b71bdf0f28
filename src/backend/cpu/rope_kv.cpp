// RopeKv and LatentKv: per-head norms, rotation, and the write into the KV pages.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rope_kv.cpp"
#include <hwy/foreach_target.h>
// After foreach_target, which re-includes this file.
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/head_rule.h"
#include "backend/cpu/norm-inl.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::backend::cpu::HWY_NAMESPACE {

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

// `heads` heads of head_dim elements; `out` may be x.
void TurnHeads(const HeadRule& rule, const float* x, float* out, size_t heads, size_t head_dim) {
  const size_t width = heads * head_dim;
  if (rule.clip > 0.0F) {
    ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
      const auto limit = hn::Set(tag, rule.clip);
      const auto v = hn::LoadU(tag, x + i);
      // A NaN stays one.
      const auto most = hn::IfThenElse(hn::Gt(v, limit), limit, v);
      hn::StoreU(hn::IfThenElse(hn::Lt(most, hn::Neg(limit)), hn::Neg(limit), most), tag, out + i);
    });
  } else if (out != x) {
    std::memcpy(out, x, width * sizeof(float));
  }
  if (rule.norm && !rule.norm_after_rope) NormRow(*rule.norm, out, out, width);
  if (rule.rope != nullptr) {
    for (size_t at = 0; at < width; at += head_dim) {
      if (rule.style == plan::RopeStyle::half) {
        RotateHalf(rule, out + at);
      } else {
        RotateInterleaved(rule, out + at);
      }
    }
  }
  if (rule.norm && rule.norm_after_rope) NormRow(*rule.norm, out, out, width);
  if (rule.scale != 1.0F) {
    ForEach(width, [&](auto tag, size_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(tag, out + i), hn::Set(tag, rule.scale)), tag, out + i);
    });
  }
}

void StoreHalves(const float* values, uint16_t* out, size_t n) { FloatsToHalves(values, out, n); }

}  // namespace wisp::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::backend::cpu {

HWY_EXPORT(TurnHeads);
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

std::optional<NormRule> head_norm(const OpContext& context, const plan::RopeKv& op,
                                  const std::optional<plan::WeightId>& weight, size_t head_dim) {
  if (!weight) return {};
  const size_t width = context[*weight].cols;  // of one head, or of all
  const size_t group = op.norm.all_heads ? width : head_dim;
  return NormRule{.kind = op.norm.kind,
                  .weight = context.vector(weight),
                  .group = group,
                  .weight_stride = width > head_dim ? group : 0,
                  .eps = op.norm.eps,
                  .weight_offset = op.norm.weight_offset};
}

void turn_column(const OpContext& context, const plan::RopeKv& op, size_t row, float* scratch) {
  const KvPages& kv = context.kv[plan::index(op.kv_layer)];
  const uint32_t head_dim = kv.shape.head_dim;
  const uint32_t value_dim = kv.shape.value_dim;
  const uint32_t num_kv_heads = kv.shape.num_kv_heads;
  const ColumnView& column = context.columns[row];
  const auto turn = HWY_DYNAMIC_DISPATCH(TurnHeads);
  HeadRule rule{.norm = head_norm(context, op, op.q_norm, head_dim),
                .norm_after_rope = op.norm.after_rope,
                .style = op.style,
                .clip = op.clip};
  if (op.rope) {
    rule.rope = context[*op.rope].floats(column.position);
    rule.rotary_dim = context[*op.rope].cols;
  }
  if (op.query_scale) rule.scale = *context[*op.query_scale].floats(column.position);
  const float* q = context.floats(op.qkv) + row * context.width(op.qkv);
  turn(rule, q, context.floats(op.out) + row * context.width(op.out), op.num_heads, head_dim);
  if (op.shared_kv) return;
  const float* k = q + op.num_heads * head_dim;
  rule.norm = head_norm(context, op, op.k_norm, head_dim);
  rule.scale = 1.0F;
  turn(rule, k, scratch, num_kv_heads, head_dim);
  const uint32_t page = column.pages[column.position / plan::kPageTokens];
  const uint32_t token = column.position % plan::kPageTokens;
  for (uint32_t head = 0; head < num_kv_heads; ++head) {
    store_token(kv, scratch + head * head_dim, kv.key_page(page, head), token, head_dim);
  }
  const float* v = k + num_kv_heads * head_dim;
  HeadRule value_rule{.clip = op.clip};
  if (op.norm.values) value_rule.norm = NormRule{.group = value_dim, .eps = op.norm.eps};
  turn(value_rule, v, scratch, num_kv_heads, value_dim);
  for (uint32_t head = 0; head < num_kv_heads; ++head) {
    store_token(kv, scratch + head * value_dim, kv.value_page(page, head), token, value_dim);
  }
}

// out = [latent | turned], the second part turned by the rule.
void join_latent(const HeadRule& rule, const float* latent, size_t latent_dim, const float* rotated,
                 float* out) {
  std::memcpy(out, latent, latent_dim * sizeof(float));
  HWY_DYNAMIC_DISPATCH(TurnHeads)(rule, rotated, out + latent_dim, 1, rule.rotary_dim);
}

void latent_column(const OpContext& context, const plan::LatentKv& op, size_t row, float* scratch) {
  const KvPages& kv = context.kv[plan::index(op.kv_layer)];
  const uint32_t head_dim = kv.shape.head_dim;
  const uint32_t value_dim = kv.shape.value_dim;
  const ColumnView& column = context.columns[row];
  const HeadRule rule{.rope = context[op.rope].floats(column.position),
                      .rotary_dim = context[op.rope].cols,
                      .style = op.style};
  const auto row_of = [&](plan::ValueId id) {
    return context.floats(id) + row * context.width(id);
  };
  for (uint32_t head = 0; head < op.num_heads; ++head) {
    join_latent(rule, row_of(op.q_latent) + head * value_dim, value_dim,
                row_of(op.q_rope) + head * rule.rotary_dim, row_of(op.out) + head * head_dim);
  }
  join_latent(rule, row_of(op.latent), value_dim, row_of(op.k_rope), scratch);
  const uint32_t page = column.pages[column.position / plan::kPageTokens];
  const uint32_t token = column.position % plan::kPageTokens;
  store_token(kv, scratch, kv.key_page(page, 0), token, head_dim);
}

}  // namespace

void run_latent_kv(const OpContext& context, const plan::LatentKv& op) {
  const size_t bytes = context.kv[plan::index(op.kv_layer)].shape.head_dim * sizeof(float);
  for_rows(context, context.columns.size(), context.width(op.out),
           [&](size_t begin, size_t end, size_t worker) {
             Buffer& scratch = context.scratch.workers[worker];
             scratch.reserve(bytes);
             for (size_t row = begin; row < end; ++row) {
               latent_column(context, op, row, reinterpret_cast<float*>(scratch.data()));
             }
           });
}

void run_rope_kv(const OpContext& context, const plan::RopeKv& op) {
  const plan::KvLayer& kv = context.kv[plan::index(op.kv_layer)].shape;
  const size_t bytes =
      sizeof(float) * kv.num_kv_heads * std::max<size_t>(kv.head_dim, kv.value_dim);
  for_rows(context, context.columns.size(), size_t{2} * context.width(op.qkv),
           [&](size_t begin, size_t end, size_t worker) {
             Buffer& scratch = context.scratch.workers[worker];
             scratch.reserve(bytes);
             for (size_t row = begin; row < end; ++row) {
               turn_column(context, op, row, reinterpret_cast<float*>(scratch.data()));
             }
           });
}

}  // namespace wisp::backend::cpu
#endif
