// RopeKv and Attention: the cache is filled by the case's own steps, so that both are checked over
// many positions, slots and scattered pages.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;

struct AttentionCase {
  const char* name;
  uint32_t num_heads = 1;
  uint32_t num_kv_heads = 1;
  uint32_t head_dim = 64;
  uint32_t value_dim = 0;  // 0: head_dim
  uint32_t rotary_dim = 0;
  plan::RopeStyle style = plan::RopeStyle::half;
  bool norms = false;
  bool own_weights = false;  // norm weights of each head
  bool query_scale = false;
  plan::HeadNorm norm = {.eps = 1e-5F, .weight_offset = 1.0F};
  float clip = 0.0F;
  float softcap = 0.0F;
  bool sinks = false;
  bool shared_kv = false;  // a second layer attends to the first one's keys and values
  uint32_t window = 0;
  uint32_t max_positions = 144;
  std::vector<std::vector<uint32_t>> steps = {};  // columns of slot 0, 1, 2
};

OpCase attention_case(const AttentionCase& a, KernelClass kernel_class, DType kv_dtype,
                      bool f16_inputs) {
  const uint32_t value_dim = a.value_dim == 0 ? a.head_dim : a.value_dim;
  CaseBuilder b(fmt::format("attention_{}_{}_{}{}", a.name,
                            kernel_class == KernelClass::prefill ? "prefill" : "decode",
                            formats::dtype_name(kv_dtype), f16_inputs ? "_half" : ""),
                kernel_class, {.max_columns = 96, .max_positions = a.max_positions});
  b.result().resources.kv_dtype = kv_dtype;
  const plan::KvLayerId layer = b.kv_layer({a.num_kv_heads, a.head_dim, value_dim});
  const uint32_t width = (a.num_heads + a.num_kv_heads) * a.head_dim + a.num_kv_heads * value_dim;
  plan::RopeKv rope{.qkv = b.input("qkv", width, plan::ValueType::f32, 1.7F),
                    .out = b.value("q", a.num_heads * a.head_dim),
                    .kv_layer = layer,
                    .num_heads = a.num_heads,
                    .q_norm = {},
                    .k_norm = {},
                    .rope = {},
                    .query_scale = {}};
  rope.norm = a.norm;
  if (a.norms) {
    const bool own = a.own_weights || a.norm.all_heads;
    rope.q_norm = b.weight("q_norm", DType::F32, 1, (own ? a.num_heads : 1) * a.head_dim);
    rope.k_norm = b.weight("k_norm", DType::F32, 1, (own ? a.num_kv_heads : 1) * a.head_dim);
  }
  rope.clip = a.clip;
  if (a.rotary_dim > 0) {
    rope.rope =
        b.weight("rope", a.max_positions, a.rotary_dim, rope_table(a.max_positions, a.rotary_dim));
  }
  if (a.query_scale) {
    std::vector<float> scales = random_floats(b.random(), a.max_positions);
    for (float& s : scales) s += 1.5F;
    rope.query_scale = b.weight("query_scale", a.max_positions, 1, scales);
  }
  rope.style = a.style;
  b.op(rope);
  plan::Attention attention{.q = rope.out,
                            .out = b.value("out", a.num_heads * value_dim),
                            .kv_layer = layer,
                            .num_heads = a.num_heads};
  attention.scale = 1.0F / std::sqrt(static_cast<float>(a.head_dim));
  attention.softcap = a.softcap;
  if (a.sinks) attention.sinks = b.weight("sinks", DType::F32, 1, a.num_heads, 2.0F);
  attention.window = a.window;
  attention.f16_inputs = f16_inputs;
  b.op(attention);
  b.output(rope.out, 0.0);
  // A half that is rounded the other way differs by 2^-11 of itself.
  const double bound = kv_dtype == DType::F16 ? 1e-3 : 2e-5;
  b.output(attention.out, f16_inputs ? 3e-3 : bound);
  if (a.shared_kv) {
    rope.qkv = b.input("more_q", a.num_heads * a.head_dim, plan::ValueType::f32, 1.7F);
    rope.out = attention.q = b.value("next_q", a.num_heads * a.head_dim);
    rope.k_norm.reset();
    rope.shared_kv = true;
    b.op(rope);
    attention.out = b.value("next_out", a.num_heads * value_dim);
    b.op(attention);
    b.output(rope.out, 0.0);
    b.output(attention.out, f16_inputs ? 3e-3 : bound);
  }
  for (const auto& counts : a.steps) {
    std::vector<Column> columns;
    // Slots in falling order: a column's place in the step is not its slot.
    for (uint32_t slot = static_cast<uint32_t>(counts.size()); slot-- > 0;) {
      const auto more = b.next_columns(slot, counts[slot]);
      columns.insert(columns.end(), more.begin(), more.end());
    }
    b.step(std::move(columns));
  }
  return std::move(b.result());
}

// What RopeKv has beyond the usual, at each size of heads; attention reads what it stored.
void add_rope_cases(std::vector<OpCase>& cases) {
  constexpr auto kLayer = plan::NormKind::layer;
  constexpr auto kInterleaved = plan::RopeStyle::interleaved;
  AttentionCase all[] = {
      {.name = "rope_clip", .head_dim = 16, .rotary_dim = 16, .clip = 0.9F},
      {.name = "rope_partial", .head_dim = 128, .rotary_dim = 32},
      {.name = "rope_partial_interleaved",
       .head_dim = 64,
       .rotary_dim = 20,
       .style = kInterleaved,
       .clip = 1.2F},
      {.name = "rope_own_weights", .head_dim = 80, .rotary_dim = 80, .own_weights = true},
      {.name = "rope_all_heads",
       .head_dim = 128,
       .rotary_dim = 128,
       .norm = {.eps = 1e-5F, .all_heads = true}},
      {.name = "rope_all_heads_clip",
       .head_dim = 16,
       .value_dim = 24,
       .rotary_dim = 8,
       .style = kInterleaved,
       .norm = {.eps = 1e-5F, .all_heads = true},
       .clip = 1.0F},
      {.name = "rope_all_heads_after",
       .head_dim = 64,
       .value_dim = 32,
       .rotary_dim = 24,
       .style = kInterleaved,
       .query_scale = true,
       .norm = {.eps = 1e-5F, .weight_offset = 1.0F, .all_heads = true, .after_rope = true},
       .clip = 1.0F},
      {.name = "rope_values_norm",
       .head_dim = 64,
       .value_dim = 40,
       .rotary_dim = 64,
       .norm = {.eps = 1e-5F, .values = true}},
      {.name = "rope_values_norm_all_heads",
       .head_dim = 48,
       .rotary_dim = 12,
       .norm = {.eps = 1e-5F, .all_heads = true, .after_rope = true, .values = true},
       .clip = 1.1F},
      {.name = "rope_layer", .head_dim = 256, .rotary_dim = 64, .norm = {kLayer, 1e-5F}},
      {.name = "rope_layer_own",
       .head_dim = 80,
       .rotary_dim = 20,
       .own_weights = true,
       .norm = {kLayer, 1e-5F}},
      {.name = "rope_layer_all_heads",
       .head_dim = 64,
       .rotary_dim = 64,
       .norm = {.kind = kLayer, .eps = 1e-5F, .all_heads = true}},
      {.name = "rope_layer_all_heads_after",
       .head_dim = 80,
       .rotary_dim = 40,
       .norm = {.kind = kLayer, .eps = 1e-5F, .all_heads = true, .after_rope = true}},
      {.name = "rope_after",
       .head_dim = 256,
       .rotary_dim = 256,
       .norm = {.eps = 1e-5F, .after_rope = true}},
      {.name = "rope_layer_after",
       .head_dim = 16,
       .rotary_dim = 12,
       .style = kInterleaved,
       .own_weights = true,
       .norm = {.kind = kLayer, .eps = 1e-5F, .after_rope = true}},
  };
  for (AttentionCase& a : all) {
    const plan::HeadNorm& n = a.norm;
    a.norms = a.own_weights || n.kind == kLayer || n.all_heads || n.after_rope;
    a.num_heads = 4;
    a.num_kv_heads = 2;
    a.steps = {{1}, {2, 3}, {7, 0, 16}, {1, 1, 1}, {65}};
    cases.push_back(attention_case(a, KernelClass::decode, DType::F32, false));
  }
}

// A clip must not hide a NaN.
OpCase nan_clip_case() {
  CaseBuilder b("rope_kv_nan", KernelClass::decode, {});
  const plan::RopeKv op{.qkv = b.input("qkv", 96, plan::ValueType::f32, 3.0F),
                        .out = b.value("q", 64),
                        .kv_layer = b.kv_layer({1, 16, 16}),
                        .num_heads = 4,
                        .q_norm = {},
                        .k_norm = {},
                        .rope = {},
                        .query_scale = {},
                        .clip = 2.0F};
  b.op(op);
  b.output(op.out, 0.0);
  b.step(b.next_columns(0, 2));
  std::vector<float> values = random_floats(b.random(), 192, 3.0F);
  values[17] = std::numeric_limits<float>::quiet_NaN();
  values[18] = std::numeric_limits<float>::infinity();
  values[130] = -values[18];
  b.set_input(op.qkv, values);
  return std::move(b.result());
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& cases) {
  const std::vector<std::vector<uint32_t>> some_steps = {{1},       {2, 3}, {7, 0, 16}, {33},
                                                         {1, 1, 1}, {65},   {2, 2}};
  const AttentionCase all[] = {
      {.name = "smollm", .num_heads = 9, .num_kv_heads = 3, .rotary_dim = 64, .steps = some_steps},
      {.name = "one_kv_head",
       .num_heads = 4,
       .head_dim = 32,
       .rotary_dim = 32,
       .style = plan::RopeStyle::interleaved,
       .steps = some_steps},
      {.name = "tiny_head",
       .num_heads = 3,
       .num_kv_heads = 3,
       .head_dim = 16,
       .rotary_dim = 8,
       .steps = some_steps},
      {.name = "partial_interleaved",
       .num_heads = 2,
       .head_dim = 80,
       .rotary_dim = 20,
       .style = plan::RopeStyle::interleaved,
       .steps = some_steps},
      {.name = "wide_head",
       .num_heads = 2,
       .head_dim = 256,
       .rotary_dim = 256,
       .norms = true,
       .steps = some_steps},
      {.name = "widest_head",
       .num_heads = 6,
       .num_kv_heads = 2,
       .head_dim = 512,
       .rotary_dim = 512,
       .norms = true,
       .max_positions = 304,
       .steps = {{1}, {2, 3}, {90}, {33}, {1, 1, 1}, {65, 2}, {1}, {60}, {1, 1}}},
      {.name = "odd",
       .num_heads = 7,
       .head_dim = 36,
       .value_dim = 20,
       .rotary_dim = 12,
       .query_scale = true,
       .steps = some_steps},
      {.name = "no_rope_softcap",
       .num_heads = 8,
       .num_kv_heads = 2,
       .head_dim = 128,
       .norms = true,
       .softcap = 1.5F,
       .steps = some_steps},
      {.name = "window",
       .num_heads = 4,
       .num_kv_heads = 2,
       .head_dim = 64,
       .rotary_dim = 64,
       .window = 21,
       .steps = some_steps},
      {.name = "sinks",
       .num_heads = 4,
       .num_kv_heads = 2,
       .head_dim = 64,
       .sinks = true,
       .window = 30,
       .steps = some_steps},
      {.name = "shared_kv",
       .num_heads = 6,
       .num_kv_heads = 2,
       .head_dim = 64,
       .rotary_dim = 64,
       .norms = true,
       .norm = {.eps = 1e-5F, .values = true},
       .shared_kv = true,
       .window = 25,
       .steps = some_steps},
      {.name = "window_one", .num_heads = 2, .head_dim = 48, .window = 1, .steps = some_steps},
      // Past one and two split-KV ranges, then a wide window whose edge lies inside a range.
      {.name = "long",
       .num_heads = 3,
       .head_dim = 64,
       .rotary_dim = 64,
       .max_positions = 640,
       .steps = {{80},
                 {80},
                 {80},
                 {15},
                 {1},
                 {1},
                 {80},
                 {80},
                 {80},
                 {14},
                 {1},
                 {1},
                 {3, 80},
                 {70},
                 {5, 1, 1}}},
      // The ranges of a long context are several tiles wide.
      {.name = "wide_ranges",
       .num_heads = 4,
       .num_kv_heads = 2,
       .head_dim = 32,
       .max_positions = 9000,
       .steps = {{80}, {80}, {80}, {20}, {1, 2}}},
      {.name = "long_window",
       .num_heads = 2,
       .head_dim = 40,
       .sinks = true,
       .window = 270,
       .max_positions = 640,
       .steps = {{80}, {80}, {80}, {15}, {1}, {1}, {80}, {80}, {80}, {14}, {1}, {1}, {3, 75}}},
  };
  for (const AttentionCase& a : all) {
    for (const KernelClass kernel_class : {KernelClass::prefill, KernelClass::decode}) {
      for (const DType kv_dtype : {DType::F16, DType::F32}) {
        cases.push_back(attention_case(a, kernel_class, kv_dtype, false));
      }
    }
    cases.push_back(attention_case(a, KernelClass::prefill, DType::F16, true));
  }
  add_rope_cases(cases);
  cases.push_back(nan_clip_case());
}

}  // namespace wisp::backend::selftest
