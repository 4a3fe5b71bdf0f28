#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "plan/plan.h"

namespace wisp::plan {
namespace {

using formats::DType;

Resources small_resources() {
  Resources r;
  r.weights = {{"embd", DType::Q8_0, 100, 64},
               {"norm", DType::F32, 1, 64},
               {"w", DType::Q4_0, 32, 64},
               {"head", DType::F16, 100, 64},
               {"bias", DType::F32, 1, 32}};
  r.kv_layers = {{1, 8, 8}};
  r.vocab_size = 100;
  return r;
}

// embed -> norm -> quantize -> linear; select -> head -> sample.
Plan small_plan() {
  Plan p{.name = "test", .max_columns = 4, .max_logits = 2};
  p.values = {
      {"x", ValueType::f32, Rows::columns, 64},   {"h", ValueType::f32, Rows::columns, 64},
      {"q", ValueType::q8, Rows::columns, 64},    {"y", ValueType::f32, Rows::columns, 32},
      {"rows", ValueType::f32, Rows::logits, 64}, {"logits", ValueType::f32, Rows::logits, 100}};
  p.ops = {
      {Embed{WeightId{0}, ValueId{0}}, KernelClass::prefill, "embed"},
      {Norm{.x = ValueId{0}, .out = ValueId{1}, .weight = WeightId{1}, .eps = 1e-5F, .group = 64},
       KernelClass::prefill, "norm"},
      {Quantize{ValueId{1}, ValueId{2}}, KernelClass::prefill, "quantize"},
      {Linear{.x = ValueId{2}, .weight = WeightId{2}, .out = ValueId{3}, .bias = WeightId{4}},
       KernelClass::prefill, "w"},
      {SelectLogits{ValueId{1}, ValueId{4}}, KernelClass::decode, "select"},
      {Linear{.x = ValueId{4}, .weight = WeightId{3}, .out = ValueId{5}}, KernelClass::decode,
       "head"},
      {Sample{ValueId{5}}, KernelClass::decode, "sample"},
  };
  return p;
}

TEST(Verify, AcceptsAGoodPlanAndPrintsIt) {
  const Plan plan = small_plan();
  verify(plan, small_resources());
  const std::string text = to_string(plan, small_resources());
  EXPECT_NE(text.find("%3 f32[k, 32] = linear %2 w:Q4_0[32, 64] bias=bias:F32[1, 32]"),
            std::string::npos)
      << text;
}

struct BadCase {
  const char* what;
  const char* message;
  std::function<void(Plan&, Resources&)> spoil;
};

template <typename T>
T& body(Plan& plan, size_t op) {
  return std::get<T>(plan.ops[op].body);
}

TEST(Verify, NamesWhatIsWrong) {
  const BadCase cases[] = {
      {"use before definition", "used before",
       [](Plan& p, Resources&) { std::swap(p.ops[0], p.ops[1]); }},
      {"in and out", "both input and output",
       [](Plan& p, Resources&) { body<Norm>(p, 1).out = ValueId{0}; }},
      {"defined twice", "written from",
       [](Plan& p, Resources&) { p.ops.insert(p.ops.begin() + 1, p.ops[0]); }},
      {"width", "expected 64", [](Plan& p, Resources&) { p.values[1].width = 32; }},
      {"unknown value", "does not exist",
       [](Plan& p, Resources&) { body<Sample>(p, 6).logits = ValueId{99}; }},
      {"unknown weight", "does not exist",
       [](Plan& p, Resources&) { body<Embed>(p, 0).table = WeightId{99}; }},
      {"group", "group 0", [](Plan& p, Resources&) { body<Norm>(p, 1).group = 0; }},
      {"q8 with plain weights", "block-quantised",
       [](Plan&, Resources& r) { r.weights[2].dtype = DType::F32; }},
      {"bias", "bias", [](Plan&, Resources& r) { r.weights[4].cols = 31; }},
      {"offset", "do not fit", [](Plan& p, Resources&) { body<Linear>(p, 3).out_offset = 1; }},
      {"row kinds", "kind of rows", [](Plan& p, Resources&) { p.values[5].rows = Rows::columns; }},
      {"head reads columns", "no logit rows",
       [](Plan& p, Resources&) { body<Linear>(p, 5).x = ValueId{1}; }},
      {"vocabulary", "vocabulary", [](Plan&, Resources& r) { r.vocab_size = 99; }},
      {"no columns", "max_columns", [](Plan& p, Resources&) { p.max_columns = 0; }},
      {"no weight type", "no weight type",
       [](Plan&, Resources& r) { r.weights[3].dtype = DType::I32; }},
  };
  for (const BadCase& bad : cases) {
    Plan plan = small_plan();
    Resources resources = small_resources();
    bad.spoil(plan, resources);
    try {
      verify(plan, resources);
      ADD_FAILURE() << bad.what << ": accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(bad.message), std::string::npos)
          << bad.what << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace wisp::plan
