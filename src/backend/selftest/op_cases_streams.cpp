// StreamMatch, StreamPredict and StreamCorrect, Add with a part that repeats, and cut gates.
#include <fmt/format.h>

#include <limits>

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {
namespace {

using formats::DType;
using plan::KernelClass;

constexpr uint32_t kSteps[] = {1, 2, 3, 8, 33};

void add_steps(CaseBuilder& b) {
  for (const uint32_t k : kSteps) b.step(b.next_columns(0, k));
}

// Two steps more: other streams of nothing, which the floor keeps finite, and one that is not
// finite.
void add_match(std::vector<OpCase>& cases, uint32_t width, uint32_t count, bool mean) {
  CaseBuilder b(fmt::format("stream_match_{}x{}{}", count, width, mean ? "_mean" : ""),
                KernelClass::decode, {});
  const uint32_t others = (count - 1) * width;
  const plan::StreamMatch op{.first = b.input("first", width, plan::ValueType::f32, 3.0F),
                             .rest = b.input("rest", others),
                             .out = b.value("out", mean ? width : others),
                             .floor = 1e-5F,
                             .mean = mean};
  b.op(op);
  b.output(op.out, 3e-6);
  add_steps(b);
  b.step(b.next_columns(1, 1));
  b.set_input(op.rest, random_floats(b.random(), others, 1e-4F));
  b.step(b.next_columns(1, 1));
  std::vector<float> values = random_floats(b.random(), others);
  values[others - 1] = std::numeric_limits<float>::quiet_NaN();
  b.set_input(op.rest, values);
  cases.push_back(std::move(b.result()));
}

// What a layer does before and after its work.
void add_update(std::vector<OpCase>& cases, uint32_t width, uint32_t count) {
  CaseBuilder b(fmt::format("stream_update_{}x{}", count, width), KernelClass::decode, {});
  const uint32_t others = (count - 1) * width;
  const plan::StreamPredict predict{.first = b.input("first", width),
                                    .rest = b.input("rest", others),
                                    .coefs = b.input("coefs", count * count),
                                    .out = b.value("predicted", width),
                                    .out_rest = b.value("predicted_rest", others)};
  b.op(predict);
  const plan::StreamCorrect correct{.first = predict.out,
                                    .rest = predict.out_rest,
                                    .y = b.input("y", width),
                                    .coefs = b.input("correction", count),
                                    .scale = b.weight("scale", DType::F32, 1, width),
                                    .out = b.value("corrected", width),
                                    .out_rest = b.value("corrected_rest", others),
                                    .scaled = b.value("scaled", width)};
  b.op(correct);
  const plan::Add add{.a = correct.out_rest,
                      .b = b.input("more", width),
                      .out = b.value("sum", others),
                      .scale = 0.5F};
  b.op(add);
  for (const plan::ValueId id :
       {predict.out, predict.out_rest, correct.out, correct.out_rest, correct.scaled, add.out}) {
    b.output(id, 3e-6);
  }
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

void add_cut(std::vector<OpCase>& cases, uint32_t width, plan::Activation activation,
             float cutoff) {
  CaseBuilder b(fmt::format("glu_cut_{}", width), KernelClass::decode, {});
  plan::Glu op{.x = b.input("x", 2 * width, plan::ValueType::f32, 4.0F),
               .out = b.value("out", width)};
  op.activation = activation;
  op.cutoff = cutoff;
  b.op(op);
  b.output(op.out, 1e-5);  // few gates are left, each the small difference of large numbers
  add_steps(b);
  b.step(b.next_columns(1, 1));
  std::vector<float> values = random_floats(b.random(), 2 * width);
  values[width - 1] = std::numeric_limits<float>::quiet_NaN();
  b.set_input(op.x, values);
  cases.push_back(std::move(b.result()));
}

// Cut gates into a projection that wants int8 or half inputs.
void add_cut_projection(std::vector<OpCase>& cases, bool prefill) {
  CaseBuilder b(fmt::format("glu_cut_linear_{}", prefill ? "prefill" : "decode"),
                prefill ? KernelClass::prefill : KernelClass::decode, {});
  plan::Glu glu{.x = b.input("x", 2 * 1056, plan::ValueType::f32, 4.0F),
                .out = b.value("glu", 1056)};
  glu.activation = plan::Activation::gelu_tanh;
  glu.cutoff = 0.5F;
  b.op(glu);
  plan::ValueId x = glu.out;
  if (!prefill) {
    x = b.value("q8", 1056, plan::Rows::columns, plan::ValueType::q8);
    b.op(plan::Quantize{.x = glu.out, .out = x});
  }
  const plan::Linear linear{.x = x,
                            .weight = b.weight("w", DType::Q4_0, 45, 1056, 0.5F),
                            .out = b.value("out", 45),
                            .f16_inputs = prefill};
  b.op(linear);
  // A quant or a half that is rounded otherwise moves the results about so much.
  b.output(linear.out, 0.01);
  add_steps(b);
  cases.push_back(std::move(b.result()));
}

}  // namespace

void add_stream_cases(std::vector<OpCase>& cases) {
  for (const bool mean : {false, true}) {
    add_match(cases, 64, 2, mean);
    add_match(cases, 1156, 4, mean);
  }
  add_update(cases, 64, 2);
  add_update(cases, 300, 4);
  add_cut(cases, 96, plan::Activation::gelu_tanh, 1.2815516F);
  add_cut(cases, 1301, plan::Activation::silu, -0.5F);
  add_cut_projection(cases, false);
  add_cut_projection(cases, true);
}

}  // namespace wisp::backend::selftest
