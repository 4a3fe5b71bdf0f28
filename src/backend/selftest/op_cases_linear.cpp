// Linear: every weight type and mode, over shapes that do and do not fit tiles.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;

constexpr DType kWeightTypes[] = {DType::F32,  DType::F16,  DType::BF16, DType::Q8_0,
                                  DType::Q4_0, DType::Q4_1, DType::Q4_K, DType::Q6_K};

// They differ from those in their codec alone.
constexpr DType kOtherTypes[] = {
    DType::Q5_0,    DType::Q5_1,  DType::Q2_K,    DType::Q3_K,   DType::Q5_K,
    DType::IQ1_S,   DType::IQ1_M, DType::IQ2_XXS, DType::IQ2_XS, DType::IQ2_S,
    DType::IQ3_XXS, DType::IQ3_S, DType::IQ4_NL,  DType::IQ4_XS, DType::TQ1_0,
    DType::TQ2_0,   DType::MXFP4, DType::NVFP4,   DType::I4_32,  DType::I4_64,
    DType::I4_128,  DType::I8_32, DType::I8_128,  DType::F8_32,  DType::F8_128};

bool is_super_block(DType dtype) { return formats::dtype_info(dtype).block_elements > 32; }

struct LinearShape {
  uint32_t rows;
  uint32_t cols;
};

enum class Mode { exact, half, int8 };

struct Extras {
  bool bias = false;
  bool residual = false;
  float scale = 1.0F;
  uint32_t out_offset = 0;
  std::vector<uint32_t> columns = {1, 2, 3, 7, 16, 33, 65};  // of each step
};

OpCase linear_case(DType dtype, LinearShape shape, Mode mode, KernelClass kernel_class,
                   const Extras& extras) {
  constexpr const char* kModes[] = {"exact", "half", "int8"};
  std::string name = fmt::format(
      "linear_{}_{}_{}_{}x{}{}{}{}{}", formats::dtype_name(dtype), kModes[static_cast<int>(mode)],
      kernel_class == KernelClass::prefill ? "prefill" : "decode", shape.rows, shape.cols,
      extras.bias ? "_bias" : "", extras.residual ? "_residual" : "",
      extras.scale != 1.0F ? "_scale" : "", extras.out_offset > 0 ? "_offset" : "");
  const uint32_t most =
      std::max(65U, *std::max_element(extras.columns.begin(), extras.columns.end()));
  CaseBuilder b(std::move(name), kernel_class,
                {.max_columns = most, .max_positions = 2 * most + 14},
                shape.rows * 31 + shape.cols);
  const auto type = mode == Mode::int8 ? plan::ValueType::q8 : plan::ValueType::f32;
  const plan::ValueId x = b.input("x", shape.cols, type, 2.0F);
  const plan::WeightId w = b.weight("w", dtype, shape.rows, shape.cols, 0.5F);
  plan::Linear op{.x = x, .weight = w, .out = {}, .bias = {}, .residual = {}};
  op.f16_inputs = mode == Mode::half;
  op.scale = extras.scale;
  if (extras.residual) op.residual = b.input("residual", shape.rows, plan::ValueType::f32, 3.0F);
  if (extras.bias) op.bias = b.weight("bias", DType::F32, 1, shape.rows, 2.0F);
  op.out = b.value("out", shape.rows + extras.out_offset);
  if (extras.out_offset > 0) {
    plan::Linear first = op;
    first.weight = b.weight("w0", dtype, extras.out_offset, shape.cols, 0.5F);
    first.bias.reset();
    first.residual.reset();
    b.op(first);
    op.out_offset = extras.out_offset;
  }
  b.op(op);
  b.output(op.out, 1e-5);
  for (const uint32_t count : extras.columns) b.step(b.next_columns(0, count));
  return std::move(b.result());
}

}  // namespace

void add_linear_cases(std::vector<OpCase>& cases) {
  for (const DType dtype : kWeightTypes) {
    const bool blocks = formats::is_block_type(dtype);
    const uint32_t block = formats::dtype_info(dtype).block_elements;
    for (const KernelClass kernel_class : {KernelClass::prefill, KernelClass::decode}) {
      for (const Mode mode : {Mode::exact, Mode::half, Mode::int8}) {
        if (mode == Mode::int8 && !blocks) continue;
        const auto add = [&](LinearShape shape, const Extras& extras) {
          shape.cols = (shape.cols + block - 1) / block * block;
          cases.push_back(linear_case(dtype, shape, mode, kernel_class, extras));
        };
        add({37, blocks ? 96U : 83U}, {});
        add({130, 544}, {.bias = true, .residual = true, .scale = 0.25F});
        add({5, 256}, {.bias = true, .residual = false, .scale = 1.0F, .out_offset = 7});
        add({1, 32}, {.bias = false, .residual = true});
      }
    }
  }
  for (const DType dtype : kOtherTypes) {
    const LinearShape shape = {130, is_super_block(dtype) ? 768U : 544U};  // odd numbers of blocks
    Extras extras = {.bias = true, .residual = true, .columns = {1, 2, 3, 8, 17, 33}};
    cases.push_back(linear_case(dtype, shape, Mode::int8, KernelClass::decode, extras));
    cases.push_back(linear_case(dtype, shape, Mode::half, KernelClass::prefill, extras));
    extras.columns = {1, 2};
    cases.push_back(linear_case(dtype, shape, Mode::exact, KernelClass::decode, extras));
  }
  // Each column is run alone too, so that few cases have many.
  const Extras many = {.bias = true, .columns = {64, 257}};
  cases.push_back(linear_case(DType::Q2_K, {130, 768}, Mode::int8, KernelClass::decode, many));
  cases.push_back(linear_case(DType::IQ2_XS, {130, 768}, Mode::half, KernelClass::prefill, many));
  // Large matrices and wide steps have tiles of their own.
  const Extras wide = {.bias = true, .columns = {2, 4, 150}};
  cases.push_back(linear_case(DType::Q4_0, {2100, 96}, Mode::int8, KernelClass::decode, wide));
  cases.push_back(linear_case(DType::F16, {2100, 96}, Mode::exact, KernelClass::decode, wide));
  cases.push_back(linear_case(DType::Q4_0, {300, 160}, Mode::half, KernelClass::prefill, wide));
  cases.push_back(linear_case(DType::F16, {300, 100}, Mode::half, KernelClass::prefill, wide));
  // Values beyond f16 saturate, tiny ones become subnormal halves.
  CaseBuilder b("linear_F32_half_saturates", KernelClass::prefill, {});
  const plan::ValueId x = b.input("x", 40);
  std::vector<float> weights = random_floats(b.random(), 6 * 40);
  for (size_t i = 0; i < weights.size(); i += 3) weights[i] *= i % 2 == 0 ? 1e6F : 1e-6F;
  const plan::WeightId w = b.weight("w", 6, 40, weights);
  const plan::ValueId out = b.value("out", 6);
  plan::Linear op{.x = x, .weight = w, .out = out, .bias = {}, .residual = {}};
  op.f16_inputs = true;
  b.op(op);
  b.output(out, 1e-5);
  b.step(b.next_columns(0, 5));
  std::vector<float> values = random_floats(b.random(), 5 * 40);
  for (size_t i = 0; i < values.size(); i += 7) values[i] *= i % 2 == 0 ? 3e5F : 3e-7F;
  b.set_input(x, values);
  cases.push_back(std::move(b.result()));
}

}  // namespace wisp::backend::selftest
