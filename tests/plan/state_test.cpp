// Ops with a state: their rules.
#include <gtest/gtest.h>

#include <functional>

#include "refused.h"

namespace wisp::plan {
namespace {

constexpr uint32_t kChannels = 4;

Resources conv_resources() {
  return {
      .weights = {{"taps", formats::DType::F32, 3, kChannels},
                  {"bias", formats::DType::F32, 1, kChannels}},
      .states = {{2 * kChannels}, {2 * kChannels}},
  };
}

Plan conv_plan() {
  Plan p{.name = "conv", .max_columns = 4};
  p.values = {{"x", ValueType::f32, Rows::columns, 3 * kChannels},
              {"out", ValueType::f32, Rows::columns, kChannels},
              {"again", ValueType::f32, Rows::columns, kChannels}};
  p.inputs = {ValueId{0}};
  const Conv conv = {.x = ValueId{0},
                     .out = ValueId{1},
                     .state = StateId{0},
                     .weight = WeightId{0},
                     .bias = WeightId{1},
                     .activation = Activation::silu,
                     .x_offset = 2 * kChannels,
                     .in_gate = 0,
                     .out_gate = kChannels};
  p.ops = {{conv, KernelClass::decode, "first"},
           {Conv{.x = ValueId{1}, .out = ValueId{2}, .state = StateId{1}, .weight = WeightId{0}},
            KernelClass::decode, "second"}};
  return p;
}

Conv& first(Plan& plan) { return std::get<Conv>(plan.ops[0].body); }

TEST(State, AcceptsAndPrints) {
  const Plan plan = conv_plan();
  verify(plan, conv_resources());
  const std::string text = to_string(plan, conv_resources());
  EXPECT_NE(text.find("conv %0 state0[8] taps:F32[3, 4] bias=bias:F32[1, 4] silu x_offset=8 "
                      "in_gate=0 out_gate=4"),
            std::string::npos)
      << text;
  EXPECT_EQ(state(plan.ops[1].body), StateId{1});
  EXPECT_EQ(state(Softcap{}), std::nullopt);
}

TEST(State, NamesWhatIsWrong) {
  struct BadCase {
    const char* message;
    std::function<void(Plan&, Resources&)> spoil;
  };
  const BadCase cases[] = {
      {"state 5 does not exist", [](Plan& p, Resources&) { first(p).state = StateId{5}; }},
      {"state 1 belongs to another op", [](Plan& p, Resources&) { first(p).state = StateId{1}; }},
      {"state 0 has width 9, expected 8", [](Plan&, Resources& r) { r.states[0].width = 9; }},
      {"expected F32[2 to 16, 4]", [](Plan&, Resources& r) { r.weights[0].rows = 1; }},
      {"expected F32[2 to 16, 4]", [](Plan&, Resources& r) { r.weights[0].rows = 17; }},
      {"expected F32[2 to 16, 4]",
       [](Plan&, Resources& r) { r.weights[0].dtype = formats::DType::F16; }},
      {"bias: bias is F32[1, 5]", [](Plan&, Resources& r) { r.weights[1].cols = 5; }},
      {"elements 9 to 13 are not there", [](Plan& p, Resources&) { first(p).x_offset = 9; }},
      {"are not there", [](Plan& p, Resources&) { first(p).in_gate = UINT32_MAX; }},
      {"elements 12 to 16 are not there", [](Plan& p, Resources&) { first(p).out_gate = 12; }},
  };
  for (const BadCase& bad : cases)
    expect_refused(bad.message, bad.spoil, conv_plan(), conv_resources());
}

}  // namespace
}  // namespace wisp::plan
