// Ops with a state: runs of several slots side by side, of all lengths, in one step and another;
// snapshots, their way back and forks.
#include <fmt/format.h>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using plan::KernelClass;

constexpr uint32_t kSnapshot = 3;  // a row of states behind the slots

std::vector<Column> joined(const std::vector<std::vector<Column>>& parts) {
  std::vector<Column> columns;
  for (const auto& part : parts) columns.insert(columns.end(), part.begin(), part.end());
  return columns;
}

// Steps of up to three slots; slot 1 goes back to a snapshot of itself, then slot 0 takes the same.
void add_steps(CaseBuilder& b) {
  b.result().num_states = 4;
  b.step(b.next_columns(1, 1));
  b.step(joined({b.next_columns(0, 2), b.next_columns(1, 1)}));
  b.step(joined({b.next_columns(2, 37), b.next_columns(0, 1), b.next_columns(1, 3)}));
  b.step(joined({b.next_columns(1, 1), b.next_columns(2, 1)}));
  b.set_state_copies({{.from = 1, .to = kSnapshot}});  // of positions 0 to 4
  b.step(b.next_columns(1, 2));
  b.set_position(1, 5);
  b.set_position(0, 5);
  b.step(joined({b.next_columns(1, 1), b.next_columns(0, 18)}));
  b.set_state_copies({{.from = kSnapshot, .to = 1}, {.from = kSnapshot, .to = 0}});
  b.set_position(2, 0);  // another sequence finds what the one before it left
  b.step(joined({b.next_columns(2, 2), b.next_columns(1, 1)}));
}

struct ConvShape {
  uint32_t channels = 0;
  uint32_t taps = 0;
  bool gated = false;
  bool bias = false;
  std::optional<plan::Activation> activation = {};
};

void add_conv(std::vector<OpCase>& cases, KernelClass kernel_class, const ConvShape& shape) {
  const bool prefill = kernel_class == KernelClass::prefill;
  CaseBuilder b(fmt::format("conv_{}_{}x{}{}{}", prefill ? "prefill" : "decode", shape.channels,
                            shape.taps, shape.gated ? "_gated" : "", shape.bias ? "_bias" : ""),
                kernel_class, {});
  const uint32_t n = shape.channels;
  plan::Conv op{.x = b.input("x", 3 * n + 8),
                .out = b.value("out", n),
                .state = b.state((shape.taps - 1) * n),
                .weight = b.weight("w", formats::DType::F32, shape.taps, n)};
  op.x_offset = shape.gated ? 2 * n : 4;
  op.activation = shape.activation;
  if (shape.bias) op.bias = b.weight("bias", formats::DType::F32, 1, n);
  if (shape.gated) {
    op.in_gate = 0;
    op.out_gate = n;
  }
  b.op(op);
  b.output(op.out, 3e-6);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

// Into a projection that wants int8 or half inputs.
void add_conv_projection(std::vector<OpCase>& cases, KernelClass kernel_class) {
  const bool prefill = kernel_class == KernelClass::prefill;
  CaseBuilder b(fmt::format("conv_linear_{}", prefill ? "prefill" : "decode"), kernel_class, {});
  plan::Conv conv{.x = b.input("x", 288),
                  .out = b.value("conv", 96),
                  .state = b.state(2 * 96),
                  .weight = b.weight("taps", formats::DType::F32, 3, 96)};
  conv.in_gate = 96;
  conv.out_gate = 192;
  b.op(conv);
  plan::ValueId x = conv.out;
  if (!prefill) {
    x = b.value("q8", 96, plan::Rows::columns, plan::ValueType::q8);
    b.op(plan::Quantize{.x = conv.out, .out = x});
  }
  const plan::Linear linear{.x = x,
                            .weight = b.weight("w", formats::DType::Q4_0, 45, 96, 0.5F),
                            .out = b.value("out", 45),
                            .f16_inputs = prefill};
  b.op(linear);
  // A quant or a half that is rounded otherwise moves the results about so much.
  b.output(linear.out, 0.02);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

struct DeltaShape {
  uint32_t heads = 0;
  uint32_t key_heads = 0;
  uint32_t key_dim = 0;
  uint32_t value_dim = 0;
  bool tiled = false;
};

void add_delta_net(std::vector<OpCase>& cases, KernelClass kernel_class, const DeltaShape& shape) {
  const bool prefill = kernel_class == KernelClass::prefill;
  CaseBuilder b(
      fmt::format("delta_net_{}_{}_{}_{}x{}{}", prefill ? "prefill" : "decode", shape.heads,
                  shape.key_heads, shape.key_dim, shape.value_dim, shape.tiled ? "_tiled" : ""),
      kernel_class, {.max_columns = 140, .max_positions = 288});
  if (prefill) b.result().block = 64;  // prompts go in chunks
  const uint32_t values = shape.heads * shape.value_dim;
  std::vector<float> rate = random_floats(b.random(), shape.heads, 0.5F);
  for (float& v : rate) v -= 0.6F;
  const plan::DeltaNet op{
      .x = b.input("x", 2 * shape.key_heads * shape.key_dim + values),
      .gates = b.input("gates", 2 * shape.heads + 3, plan::ValueType::f32, 3.0F),
      .out = b.value("out", values),
      .state = b.state(values * shape.key_dim),
      .rate = b.weight("rate", 1, shape.heads, rate),
      .dt_bias = b.weight("dt_bias", formats::DType::F32, 1, shape.heads),
      .num_heads = shape.heads,
      .num_key_heads = shape.key_heads,
      .key_dim = shape.key_dim,
      .value_dim = shape.value_dim,
      .gates_offset = 2,
      .tiled = shape.tiled};
  b.op(op);
  b.output(op.out, 2e-5);
  add_steps(b);
  b.set_position(0, 0);
  b.set_position(1, 0);
  b.step(joined({b.next_columns(0, 64), b.next_columns(1, 70)}));
  b.step(b.next_columns(0, 131));
  cases.push_back(std::move(b.result()));
}

struct ScanShape {
  uint32_t channels = 0;
  uint32_t heads = 0;
  uint32_t groups = 1;
  uint32_t state_size = 0;
  bool one_rate = false;
  bool limits = false;
};

void add_scan(std::vector<OpCase>& cases, KernelClass kernel_class, const ScanShape& shape) {
  const bool prefill = kernel_class == KernelClass::prefill;
  CaseBuilder b(
      fmt::format("scan_{}_{}_{}_{}x{}{}", prefill ? "prefill" : "decode", shape.heads,
                  shape.groups, shape.channels, shape.state_size, shape.limits ? "_limits" : ""),
      kernel_class, {.max_columns = 140, .max_positions = 288});
  const uint32_t group = shape.groups * shape.state_size;
  const uint32_t rates = shape.one_rate ? 1 : shape.state_size;
  std::vector<float> rate = random_floats(b.random(), size_t{shape.heads} * rates, 2.0F);
  for (float& v : rate) v -= 2.1F;
  plan::Scan op{.x = b.input("x", shape.channels + 5),
                .dt = b.input("dt", shape.heads + 3, plan::ValueType::f32, 3.0F),
                .bc = b.input("bc", 2 * group + 1),
                .out = b.value("out", shape.channels),
                .state = b.state(shape.channels * shape.state_size),
                .rate = b.weight("rate", shape.heads, rates, rate),
                .dt_bias = b.weight("dt_bias", formats::DType::F32, 1, shape.heads, 6.0F),
                .skip = b.weight("skip", formats::DType::F32, 1, shape.heads),
                .num_heads = shape.heads,
                .num_groups = shape.groups,
                .state_size = shape.state_size,
                .dt_offset = 3,
                .b_offset = 1,
                .c_offset = 1 + group};
  if (shape.limits) {
    op.dt_min = 0.1F;
    op.dt_max = 1.5F;
  }
  b.op(op);
  b.output(op.out, 1e-5);
  add_steps(b);
  if (prefill) b.step(b.next_columns(1, 131));
  cases.push_back(std::move(b.result()));
}

void add_wkv(std::vector<OpCase>& cases, KernelClass kernel_class, uint32_t channels) {
  const bool prefill = kernel_class == KernelClass::prefill;
  CaseBuilder b(fmt::format("wkv_{}_{}", prefill ? "prefill" : "decode", channels), kernel_class,
                {});
  std::vector<float> rate = random_floats(b.random(), channels, 2.0F);
  for (float& v : rate) v -= 2.05F;
  const plan::Wkv op{.k = b.input("k", channels, plan::ValueType::f32, 5.0F),
                     .v = b.input("v", channels),
                     .out = b.value("out", channels),
                     .state = b.state(3 * channels),
                     .rate = b.weight("rate", 1, channels, rate),
                     .first = b.weight("first", formats::DType::F32, 1, channels, 2.0F)};
  b.op(op);
  b.output(op.out, 1e-5);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

}  // namespace

void add_recurrent_cases(std::vector<OpCase>& cases) {
  for (const KernelClass kernel_class : {KernelClass::prefill, KernelClass::decode}) {
    add_conv(cases, kernel_class, {.channels = 64, .taps = 3, .gated = true});
    add_conv(cases, kernel_class,
             {.channels = 300, .taps = 4, .bias = true, .activation = plan::Activation::silu});
    add_conv(cases, kernel_class, {.channels = 20, .taps = 16, .gated = true, .bias = true});
    add_conv(cases, kernel_class, {.channels = 4, .taps = 2});
    add_conv_projection(cases, kernel_class);
    add_delta_net(cases, kernel_class, {4, 2, 16, 16});
    add_wkv(cases, kernel_class, 67);
    add_scan(cases, kernel_class, {.channels = 96, .heads = 96, .state_size = 16});
    add_scan(cases, kernel_class, {.channels = 70, .heads = 70, .state_size = 16});
    add_scan(cases, kernel_class, {.channels = 6, .heads = 6, .state_size = 3});
    add_scan(cases, kernel_class,
             {.channels = 64, .heads = 4, .groups = 2, .state_size = 128, .one_rate = true});
    add_scan(cases, kernel_class,
             {.channels = 24,
              .heads = 3,
              .groups = 3,
              .state_size = 250,
              .one_rate = true,
              .limits = true});
    add_delta_net(cases, kernel_class, {6, 2, 8, 8, true});
    add_delta_net(cases, kernel_class, {3, 3, 10, 4});
    add_delta_net(cases, kernel_class, {1, 1, 128, 128});
    add_delta_net(cases, kernel_class, {2, 2, 256, 40});
  }
}

}  // namespace wisp::backend::selftest
