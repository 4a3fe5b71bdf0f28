// LatentKv with attention over what it stored, and the matrices of heads (ExpertLinear without
// routes).
#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;

struct LatentCase {
  const char* name = "";
  uint32_t num_heads = 1;
  uint32_t latent_dim = 32;
  uint32_t rotary_dim = 8;
  plan::RopeStyle style = plan::RopeStyle::interleaved;
  uint32_t positions = 200;
  // Columns of slots 0 and 1.
  std::vector<std::pair<uint32_t, uint32_t>> steps = {{1, 0}, {2, 3}, {33, 7}, {65, 1}, {40, 40}};
};

OpCase latent_case(const LatentCase& l, KernelClass kernel_class, DType kv_dtype,
                   bool f16_inputs = false) {
  const uint32_t head_dim = l.latent_dim + l.rotary_dim;
  CaseBuilder b(fmt::format("latent_{}_{}_{}{}", l.name,
                            kernel_class == KernelClass::prefill ? "prefill" : "decode",
                            formats::dtype_name(kv_dtype), f16_inputs ? "_half" : ""),
                kernel_class, {.max_columns = 96, .max_positions = l.positions});
  b.result().resources.kv_dtype = kv_dtype;
  std::vector<float> table;
  for (uint32_t p = 0; p < l.positions; ++p) {
    for (uint32_t i = 0; i < l.rotary_dim / 2; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / l.rotary_dim);
      table.push_back(static_cast<float>(std::cos(angle)));
      table.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  const plan::LatentKv op{.q_latent = b.input("q_latent", l.num_heads * l.latent_dim),
                          .q_rope = b.input("q_rope", l.num_heads * l.rotary_dim),
                          .latent = b.input("latent", l.latent_dim),
                          .k_rope = b.input("k_rope", l.rotary_dim),
                          .out = b.value("q", l.num_heads * head_dim),
                          .kv_layer = b.kv_layer({1, head_dim, l.latent_dim, true}),
                          .num_heads = l.num_heads,
                          .rope = b.weight("rope", l.positions, l.rotary_dim, table),
                          .style = l.style};
  b.op(op);
  plan::Attention attention{.q = op.out,
                            .out = b.value("out", l.num_heads * l.latent_dim),
                            .kv_layer = op.kv_layer,
                            .num_heads = l.num_heads};
  attention.scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  attention.f16_inputs = f16_inputs;
  b.op(attention);
  b.output(op.out, 1e-6);
  const double bound = kv_dtype == DType::F16 ? 1e-3 : 2e-5;
  b.output(attention.out, f16_inputs ? 3e-3 : bound);
  for (const auto& counts : l.steps) {
    std::vector<Column> columns = b.next_columns(1, counts.second);
    const auto more = b.next_columns(0, counts.first);
    columns.insert(columns.end(), more.begin(), more.end());
    b.step(std::move(columns));
  }
  return std::move(b.result());
}

OpCase heads_case(DType dtype, uint32_t heads, uint32_t rows, uint32_t cols) {
  CaseBuilder b(fmt::format("heads_{}_{}x{}x{}", formats::dtype_name(dtype), heads, rows, cols),
                KernelClass::decode, {});
  const plan::ExpertLinear op{.x = b.input("x", heads * cols),
                              .routes = {},
                              .weight = b.weight("w", dtype, heads * rows, cols),
                              .out = b.value("out", heads * rows),
                              .num_experts = heads,
                              .top_k = heads};
  b.op(op);
  b.output(op.out, 1e-5);
  for (const uint32_t k : {1U, 2U, 3U, 33U}) b.step(b.next_columns(0, k));
  return std::move(b.result());
}

// The sizes of published models: over several ranges of keys in the decode class, several tiles of
// them in the prefill class.
void add_real_cases(std::vector<OpCase>& cases) {
  const LatentCase v2_lite = {
      .name = "v2_lite",
      .num_heads = 16,
      .latent_dim = 512,
      .rotary_dim = 64,
      .positions = 304,
      .steps = {{90, 0}, {33, 2}, {4, 1}, {1, 1}, {90, 0}, {80, 5}, {2, 1}}};
  LatentCase v3 = v2_lite;
  v3.name = "v3";
  v3.num_heads = 128;
  v3.positions = 144;
  v3.steps = {{40, 2}, {80, 0}, {6, 1}, {1, 0}, {1, 1}, {3, 0}};
  LatentCase v3_prompt = v3;
  v3_prompt.steps = {{33, 2}, {6, 1}};
  for (const DType kv_dtype : {DType::F16, DType::F32}) {
    cases.push_back(latent_case(v2_lite, KernelClass::decode, kv_dtype));
    cases.push_back(latent_case(v2_lite, KernelClass::prefill, kv_dtype));
    cases.push_back(latent_case(v3, KernelClass::decode, kv_dtype));
    cases.push_back(latent_case(v3_prompt, KernelClass::prefill, kv_dtype));
  }
  cases.push_back(latent_case(v2_lite, KernelClass::prefill, DType::F16, true));
  cases.push_back(latent_case(v3_prompt, KernelClass::prefill, DType::F16, true));
}

}  // namespace

void add_latent_cases(std::vector<OpCase>& cases) {
  const LatentCase all[] = {
      {.name = "tiny", .num_heads = 4},
      {.name = "half", .num_heads = 3, .latent_dim = 64, .style = plan::RopeStyle::half},
      {.name = "wide", .num_heads = 2, .latent_dim = 96, .rotary_dim = 32},
      {.name = "wider", .num_heads = 3, .latent_dim = 128, .rotary_dim = 32},
  };
  for (const LatentCase& l : all) {
    for (const KernelClass kernel_class : {KernelClass::prefill, KernelClass::decode}) {
      cases.push_back(latent_case(l, kernel_class, DType::F16));
    }
    cases.push_back(latent_case(l, KernelClass::prefill, DType::F16, true));
  }
  cases.push_back(latent_case(all[0], KernelClass::decode, DType::F32));
  add_real_cases(cases);
  cases.push_back(heads_case(DType::F32, 4, 32, 16));
  cases.push_back(heads_case(DType::BF16, 3, 20, 34));
  cases.push_back(heads_case(DType::Q8_0, 2, 48, 64));
}

}  // namespace wisp::backend::selftest
