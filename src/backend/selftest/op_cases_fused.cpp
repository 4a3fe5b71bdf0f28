// Chains of ops that the GPU draws into one kernel: norms, GLUs and activations between Linears
// with q8 inputs; and those whose values it narrows to f16 for cooperative matrices.
#include <fmt/format.h>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::ValueId;

// A quant that differs by one between the blocks of the chain moves its results about so much.
constexpr double kFlipBound = 0.01;

class Chain {
 public:
  explicit Chain(std::string name) : b_(std::move(name), plan::KernelClass::decode, {}) {}

  ValueId input(uint32_t width) { return b_.input("in", width, plan::ValueType::f32, 2.0F); }

  ValueId linear(ValueId x, DType dtype, uint32_t rows, bool bias,
                 std::optional<ValueId> residual) {
    const uint32_t width = b_.result().plan[x].width;
    const ValueId q8 = b_.value("q8", width, plan::Rows::columns, plan::ValueType::q8);
    b_.op(plan::Quantize{.x = x, .out = q8});
    plan::Linear op{.x = q8,
                    .weight = b_.weight("w", dtype, rows, width, 0.5F),
                    .out = b_.value("linear", rows),
                    .bias = {},
                    .residual = residual};
    if (bias) op.bias = b_.weight("bias", DType::F32, 1, rows, 2.0F);
    b_.op(op);
    return op.out;
  }

  ValueId layer_norm(ValueId x) {
    const uint32_t width = b_.result().plan[x].width;
    const plan::Norm op{.x = x,
                        .out = b_.value("norm", width),
                        .kind = plan::NormKind::layer,
                        .weight = b_.weight("norm", DType::F32, 1, width, 2.0F),
                        .bias = b_.weight("norm_bias", DType::F32, 1, width),
                        .eps = 1e-5F,
                        .group = width};
    b_.op(op);
    return op.out;
  }

  ValueId norm(ValueId x, bool weight, float offset) {
    const uint32_t width = b_.result().plan[x].width;
    plan::Norm op{.x = x, .out = b_.value("norm", width), .weight = {}};
    if (weight) op.weight = b_.weight("norm", DType::F32, 1, width, 2.0F);
    op.eps = 1e-5F;
    op.weight_offset = offset;
    op.group = width;
    b_.op(op);
    return op.out;
  }

  ValueId glu(ValueId x, plan::Activation activation) {
    const plan::Glu op{
        .x = x, .out = b_.value("glu", b_.result().plan[x].width / 2), .activation = activation};
    b_.op(op);
    return op.out;
  }

  ValueId activate(ValueId x, plan::Activation activation) {
    const plan::Activate op{
        .x = x, .out = b_.value("act", b_.result().plan[x].width), .activation = activation};
    b_.op(op);
    return op.out;
  }

  OpCase finish(ValueId out, double bound) {
    b_.output(out, bound);
    for (const uint32_t k : {1U, 2U, 3U, 7U, 16U, 33U, 65U}) b_.step(b_.next_columns(0, k));
    return std::move(b_.result());
  }

 private:
  CaseBuilder b_;
};

OpCase norm_case(DType dtype, uint32_t width, uint32_t hidden, bool weight, float offset,
                 bool keep_sum) {
  Chain chain(fmt::format("fused_norm_{}_{}x{}{}{}", formats::dtype_name(dtype), hidden, width,
                          weight ? "_weight" : "", keep_sum ? "_sum" : ""));
  const ValueId residual = chain.input(hidden);
  const ValueId sum = chain.linear(chain.input(width), dtype, hidden, !weight, residual);
  const ValueId out = chain.linear(chain.norm(sum, weight, offset), dtype, 45, false, {});
  return chain.finish(keep_sum ? sum : out, kFlipBound);
}

OpCase glu_case(DType dtype, uint32_t width, uint32_t hidden, plan::Activation activation,
                bool bias) {
  Chain chain(fmt::format("fused_glu_{}_{}x{}{}", formats::dtype_name(dtype), hidden, width,
                          bias ? "_bias" : ""));
  const ValueId gate_up = chain.linear(chain.input(width), dtype, 2 * hidden, bias, {});
  return chain.finish(chain.linear(chain.glu(gate_up, activation), dtype, 45, false, {}),
                      kFlipBound);
}

OpCase layer_norm_case(DType dtype, uint32_t width, uint32_t hidden) {
  Chain chain(fmt::format("fused_layer_norm_{}_{}x{}", formats::dtype_name(dtype), hidden, width));
  const ValueId x = chain.linear(chain.input(width), dtype, hidden, true, {});
  return chain.finish(chain.linear(chain.layer_norm(x), dtype, 45, false, {}), kFlipBound);
}

OpCase activate_case(DType dtype, uint32_t width, uint32_t hidden, plan::Activation activation) {
  Chain chain(fmt::format("fused_activate_{}_{}x{}", formats::dtype_name(dtype), hidden, width));
  const ValueId x = chain.linear(chain.input(width), dtype, hidden, true, {});
  return chain.finish(chain.linear(chain.activate(x, activation), dtype, 45, false, {}),
                      kFlipBound);
}

struct Heads {
  uint32_t num_heads = 1;
  uint32_t num_kv_heads = 1;
  uint32_t head_dim = 64;
  uint32_t value_dim = 64;
  uint32_t rotary_dim = 64;
  plan::RopeStyle style = plan::RopeStyle::half;
  DType kv_dtype = DType::F16;
  bool bias = false;
  std::optional<uint32_t> norm_heads = {};  // q and k have norms: 1, or each head its own weights
};

// A projection to heads, their rotation and attention to what was written to the pages.
OpCase rope_case(DType dtype, uint32_t width, const Heads& h) {
  constexpr uint32_t kPositions = 160;
  CaseBuilder b(
      fmt::format("fused_rope_{}_{}x{}x{}_{}{}{}", formats::dtype_name(dtype), h.num_heads,
                  h.num_kv_heads, h.head_dim, formats::dtype_name(h.kv_dtype),
                  h.style == plan::RopeStyle::interleaved ? "_interleaved" : "",
                  h.norm_heads ? "_norm" : ""),
      plan::KernelClass::decode, {.max_columns = 70, .max_positions = kPositions});
  b.result().resources.kv_dtype = h.kv_dtype;
  const plan::KvLayerId layer = b.kv_layer({h.num_kv_heads, h.head_dim, h.value_dim});
  const uint32_t rows = (h.num_heads + h.num_kv_heads) * h.head_dim + h.num_kv_heads * h.value_dim;
  plan::Linear linear{.x = b.input("x", width, plan::ValueType::q8, 2.0F),
                      .weight = b.weight("w", dtype, rows, width, 0.5F),
                      .out = b.value("qkv", rows),
                      .bias = {},
                      .residual = {}};
  if (h.bias) linear.bias = b.weight("bias", DType::F32, 1, rows, 2.0F);
  b.op(linear);
  plan::RopeKv rope{
      .qkv = linear.out,
      .out = b.value("q", h.num_heads * h.head_dim),
      .kv_layer = layer,
      .num_heads = h.num_heads,
      .q_norm = {},
      .k_norm = {},
      .rope = b.weight("rope", kPositions, h.rotary_dim, rope_table(kPositions, h.rotary_dim)),
      .query_scale = {},
      .style = h.style};
  if (h.norm_heads) {
    const auto weights = [&](const char* name, uint32_t heads) {
      return b.weight(name, DType::F32, 1, std::min(heads, *h.norm_heads) * h.head_dim, 2.0F);
    };
    rope.q_norm = weights("q_norm", h.num_heads);
    rope.k_norm = weights("k_norm", h.num_kv_heads);
    rope.norm = {.eps = 1e-5F, .weight_offset = h.bias ? 1.0F : 0.0F};
  }
  b.op(rope);
  b.output(rope.out, 1e-5);
  const plan::Attention attention{.q = rope.out,
                                  .out = b.value("out", h.num_heads * h.value_dim),
                                  .kv_layer = layer,
                                  .num_heads = h.num_heads,
                                  .scale = 0.02F};
  b.op(attention);
  // A half that is rounded the other way differs by 2^-11 of itself.
  b.output(attention.out, h.kv_dtype == DType::F16 ? 1e-3 : 2e-5);
  for (const uint32_t k : {1U, 2U, 3U, 7U, 16U, 33U, 65U}) b.step(b.next_columns(0, k));
  return std::move(b.result());
}

// What rounds to another half in f32 than in the reference moves the results about so much.
constexpr double kHalfBound = 0.003;

enum class Middle : uint8_t { norm, layer_norm, glu, activate };

OpCase half_case(Middle kind, uint32_t width, uint32_t rows) {
  constexpr const char* kNames[] = {"norm", "layer_norm", "glu", "activate"};
  CaseBuilder b(fmt::format("narrow_{}_{}x{}", kNames[static_cast<int>(kind)], rows, width),
                plan::KernelClass::prefill, {.max_columns = 150, .max_positions = 320});
  const uint32_t x_width = kind == Middle::glu ? 2 * width : width;
  const ValueId x = b.input("x", x_width, plan::ValueType::f32, 3.0F);
  const ValueId middle = b.value("middle", width);
  if (kind == Middle::glu) {
    b.op(plan::Glu{.x = x, .out = middle});
  } else if (kind == Middle::activate) {
    b.op(plan::Activate{.x = x, .out = middle, .activation = plan::Activation::gelu_tanh});
  } else {
    const bool layer = kind == Middle::layer_norm;
    b.op(plan::Norm{.x = x,
                    .out = middle,
                    .kind = layer ? plan::NormKind::layer : plan::NormKind::rms,
                    .weight = b.weight("norm", DType::F32, 1, width, 2.0F),
                    .eps = 1e-5F,
                    .group = width});
  }
  plan::Linear op{.x = middle,
                  .weight = b.weight("w", DType::Q4_0, rows, width, 0.5F),
                  .out = b.value("out", rows),
                  .bias = {},
                  .residual = {}};
  op.f16_inputs = true;
  b.op(op);
  b.output(op.out, kHalfBound);
  for (const uint32_t k : {1U, 33U, 64U, 150U}) b.step(b.next_columns(0, k));
  return std::move(b.result());
}

}  // namespace

void add_fused_cases(std::vector<OpCase>& cases) {
  using enum plan::Activation;
  for (const DType dtype : {DType::Q4_0, DType::Q4_K}) {
    cases.push_back(norm_case(dtype, 256, 512, true, 0.0F, false));
    cases.push_back(norm_case(dtype, 256, 512, true, 0.0F, true));
    cases.push_back(glu_case(dtype, 512, 768, silu, false));
  }
  // Widths that fill no tile.
  cases.push_back(norm_case(DType::Q8_0, 96, 32, false, 0.0F, false));
  cases.push_back(norm_case(DType::Q4_1, 544, 1056, true, 1.0F, false));
  cases.push_back(glu_case(DType::Q8_0, 96, 32, gelu_tanh, true));
  cases.push_back(glu_case(DType::Q4_0, 288, 1120, relu_squared, true));
  cases.push_back(layer_norm_case(DType::Q4_0, 96, 544));
  cases.push_back(activate_case(DType::Q8_0, 96, 1056, gelu_erf));
  cases.push_back(activate_case(DType::Q4_0, 64, 288, relu_squared));
  cases.push_back(rope_case(DType::Q4_0, 256, {.num_heads = 4, .num_kv_heads = 2}));
  cases.push_back(rope_case(DType::Q8_0, 96, {.num_heads = 3, .rotary_dim = 32, .bias = true}));
  cases.push_back(rope_case(DType::Q4_K, 256,
                            {.num_heads = 2,
                             .num_kv_heads = 2,
                             .head_dim = 128,
                             .value_dim = 96,
                             .rotary_dim = 128,
                             .style = plan::RopeStyle::interleaved,
                             .kv_dtype = DType::F32}));
  cases.push_back(
      rope_case(DType::Q4_1, 64,
                {.num_heads = 5, .head_dim = 36, .value_dim = 20, .rotary_dim = 12, .bias = true}));
  cases.push_back(rope_case(
      DType::Q4_0, 256,
      {.num_heads = 3, .head_dim = 128, .value_dim = 128, .rotary_dim = 128, .norm_heads = 1}));
  cases.push_back(rope_case(DType::Q4_K, 512,
                            {.num_heads = 6,
                             .num_kv_heads = 2,
                             .value_dim = 36,
                             .rotary_dim = 32,
                             .bias = true,
                             .norm_heads = 6}));
  cases.push_back(rope_case(DType::Q8_0, 96,
                            {.num_heads = 4,
                             .num_kv_heads = 2,
                             .head_dim = 96,
                             .value_dim = 96,
                             .rotary_dim = 96,
                             .style = plan::RopeStyle::interleaved,
                             .norm_heads = 1}));
  cases.push_back(half_case(Middle::norm, 544, 200));
  cases.push_back(half_case(Middle::layer_norm, 544, 37));
  cases.push_back(half_case(Middle::glu, 96, 37));
  cases.push_back(half_case(Middle::activate, 96, 200));
}

}  // namespace wisp::backend::selftest
