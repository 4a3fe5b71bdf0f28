#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"
#include "plan/plan.h"
#include "refused.h"

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

// A plan with what families beyond llama need: 4 query heads of 8 elements over 2 KV heads.
Resources wide_resources() {
  Resources r;
  r.weights = {{"embd", DType::Q8_0, 100, 64},   {"positions", DType::F32, 48, 64},
               {"norm", DType::F32, 1, 64},      {"norm_bias", DType::F32, 1, 64},
               {"q_norm", DType::F32, 1, 32},    {"k_norm", DType::F32, 1, 16},
               {"rope", DType::F32, 48, 8},      {"group_norm", DType::F32, 1, 16},
               {"group_bias", DType::F32, 1, 16}};
  r.kv_layers = {{2, 8, 8}};
  r.vocab_size = 100;
  return r;
}

Plan wide_plan() {
  Plan p{.name = "wide", .max_columns = 4, .max_logits = 2};
  for (const auto& [name, width] :
       {std::pair("x", 64), std::pair("h", 64), std::pair("q", 32), std::pair("groups", 64),
        std::pair("act", 64), std::pair("capped", 64)}) {
    p.values.push_back({name, ValueType::f32, Rows::columns, static_cast<uint32_t>(width)});
  }
  RopeKv rope{.qkv = ValueId{1},
              .out = ValueId{2},
              .kv_layer = KvLayerId{0},
              .num_heads = 4,
              .q_norm = WeightId{4},
              .k_norm = WeightId{5},
              .rope = WeightId{6},
              .query_scale = {}};
  rope.norm = {.kind = NormKind::layer, .eps = 1e-5F, .all_heads = true, .after_rope = true};
  rope.clip = 8.0F;
  const auto add = [&](const OpBody& body) {
    p.ops.push_back({body, KernelClass::decode, fmt::format("op{}", p.ops.size())});
  };
  add(Embed{.table = WeightId{0}, .out = ValueId{0}, .positions = WeightId{1}});
  add(Norm{.x = ValueId{0},
           .out = ValueId{1},
           .kind = NormKind::layer,
           .weight = WeightId{2},
           .bias = WeightId{3},
           .eps = 1e-5F,
           .group = 16});
  add(rope);
  add(Norm{.x = ValueId{0},
           .out = ValueId{3},
           .kind = NormKind::layer,
           .weight = WeightId{7},
           .bias = WeightId{8},
           .group = 16});
  add(Activate{.x = ValueId{0}, .out = ValueId{4}, .activation = Activation::gelu_erf});
  add(Softcap{.x = ValueId{0}, .out = ValueId{5}, .cap = 30.0F});
  return p;
}

TEST(Verify, AcceptsAndPrintsNormsOfHeadsAndGroups) {
  const Plan plan = wide_plan();
  verify(plan, wide_resources());
  const std::string text = to_string(plan, wide_resources());
  for (const char* part :
       {"= embed embd:Q8_0[100, 64] positions=positions:F32[48, 64]",
        "= norm %0 layer norm:F32[1, 64] bias=norm_bias:F32[1, 64] eps=1e-05 group=16",
        "k_norm=k_norm:F32[1, 16] rope=rope:F32[48, 8] layer eps=1e-05 all_heads after_rope clip=8",
        "= activate %0 gelu_erf", "= softcap %0 cap=30"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  // Norms of values; no keys and values but those of another layer.
  Plan shared = plan;
  RopeKv& rope = std::get<RopeKv>(shared.ops[2].body);
  rope.norm.kind = NormKind::rms;
  rope.norm.values = true;
  verify(shared, wide_resources());
  rope.k_norm.reset();
  rope.shared_kv = true;
  shared.values[0].width = shared.values[1].width = 32;
  Resources narrow = wide_resources();
  for (const size_t w : {0, 1, 2, 3}) narrow.weights[w].cols = 32;
  for (const size_t v : {3, 4, 5}) shared.values[v].width = 32;
  verify(shared, narrow);
  EXPECT_NE(to_string(shared, narrow).find("after_rope values clip=8 shared_kv"), std::string::npos)
      << to_string(shared, narrow);
  // Weights of each head, or of one for all.
  Plan heads = plan;
  std::get<RopeKv>(heads.ops[2].body).norm.all_heads = false;
  verify(heads, wide_resources());
  Resources one = wide_resources();
  one.weights[4].cols = one.weights[5].cols = 8;
  verify(heads, one);
}

// A layer of 8 experts in 4 groups, of which 2 are chosen, as its columns pass it.
Resources expert_resources() {
  Resources r;
  r.weights = {{"route_bias", DType::F32, 1, 8},
               {"up", DType::Q4_0, 512, 64},
               {"up_bias", DType::F32, 1, 512},
               {"down", DType::Q4_0, 512, 32},
               {"scales", DType::F32, 1, 8}};
  return r;
}

Plan expert_plan() {
  Plan p{.name = "experts", .max_columns = 4};
  for (const auto& [name, width] :
       {std::pair("logits", 8), std::pair("x", 64), std::pair("routes", 4), std::pair("q8", 64),
        std::pair("up", 128), std::pair("glu", 64), std::pair("down", 128), std::pair("gate", 1),
        std::pair("sum", 64), std::pair("out", 64)}) {
    p.values.push_back({name, ValueType::f32, Rows::columns, static_cast<uint32_t>(width)});
  }
  p.values[3].type = ValueType::q8;
  p.inputs = {ValueId{0}, ValueId{1}, ValueId{7}};
  const auto add = [&](const OpBody& body) {
    p.ops.push_back({body, KernelClass::decode, fmt::format("op{}", p.ops.size())});
  };
  add(Route{.logits = ValueId{0},
            .out = ValueId{2},
            .top_k = 2,
            .score = RouterScore::sigmoid,
            .bias = WeightId{0},
            .num_groups = 4,
            .top_groups = 2,
            .group_score = GroupScore::best_two,
            .normalise = true,
            .scale = 2.5F,
            .expert_scales = WeightId{4}});
  add(Quantize{ValueId{1}, ValueId{3}});
  add(ExpertLinear{.x = ValueId{3},
                   .routes = ValueId{2},
                   .weight = WeightId{1},
                   .out = ValueId{4},
                   .num_experts = 8,
                   .top_k = 2,
                   .bias = WeightId{2}});
  add(Glu{.x = ValueId{4},
          .out = ValueId{5},
          .groups = 2,
          .alpha = 1.5F,
          .limit = 7.0F,
          .up_offset = 1.0F});
  add(ExpertLinear{.x = ValueId{5},
                   .routes = ValueId{2},
                   .weight = WeightId{3},
                   .out = ValueId{6},
                   .num_experts = 8,
                   .top_k = 2,
                   .f16_inputs = true});
  add(Combine{.x = ValueId{6},
              .routes = ValueId{2},
              .out = ValueId{8},
              .residual = ValueId{1},
              .scale = 0.5F});
  add(Gate{.x = ValueId{8}, .gate = ValueId{7}, .out = ValueId{9}});
  return p;
}

TEST(Verify, AcceptsAndPrintsExperts) {
  Plan plan = expert_plan();
  verify(plan, expert_resources());
  const std::string text = to_string(plan, expert_resources());
  constexpr const char* kRoute =
      "= route %0 sigmoid top_k=2 bias=route_bias:F32[1, 8] groups=4 top_groups=2 best_two "
      "normalise scale=2.5 expert_scales=scales:F32[1, 8]";
  for (const char* part :
       {kRoute, "= expert_linear %3 %2 up:Q4_0[512, 64] bias=up_bias:F32[1, 512] experts=8",
        "= glu %4 silu groups=2 alpha=1.5 limit=7 up_offset=1",
        "= expert_linear %5 %2 down:Q4_0[512, 32] experts=8 f16_inputs",
        "= combine %6 %2 residual=%1 scale=0.5", "= gate %8 %7"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  plan.values[7].width = 64;  // a gate of each element
  verify(plan, expert_resources());
  Gate& gate = std::get<Gate>(plan.ops[6].body);
  gate.activation = Activation::gelu_tanh;
  gate.x_offset = 32;
  plan.values[7].width = plan.values[9].width = 32;
  verify(plan, expert_resources());
  EXPECT_NE(to_string(plan, expert_resources()).find("= gate %8 %7 gelu_tanh x_offset=32"),
            std::string::npos);
}

TEST(NumPositions, IsThatOfTheShortestTable) {
  EXPECT_EQ(num_positions(small_plan(), small_resources()), UINT32_MAX);
  Resources resources = wide_resources();
  EXPECT_EQ(num_positions(wide_plan(), resources), 48U);
  resources.weights[6].rows = 40;  // rope
  EXPECT_EQ(num_positions(wide_plan(), resources), 40U);
  resources.weights[1].rows = 30;  // positions
  EXPECT_EQ(num_positions(wide_plan(), resources), 30U);
  resources.weights.push_back({"query_scale", DType::F32, 20, 1});
  Plan scaled = wide_plan();
  std::get<RopeKv>(scaled.ops[2].body).query_scale = WeightId{9};
  EXPECT_EQ(num_positions(scaled, resources), 20U);
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

void expect_refused(const BadCase& bad, Plan plan, Resources resources) {
  SCOPED_TRACE(bad.what);
  expect_refused(bad.message, bad.spoil, std::move(plan), std::move(resources));
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
  for (const BadCase& bad : cases) expect_refused(bad, small_plan(), small_resources());
}

TEST(Verify, NamesWhatIsWrongWithNormsOfHeadsAndGroups) {
  const BadCase cases[] = {
      {"positions of a block type", "expected F32 rows of 64",
       [](Plan&, Resources& r) { r.weights[1].dtype = DType::Q8_0; }},
      {"narrow positions", "expected F32 rows of 64",
       [](Plan&, Resources& r) { r.weights[1].cols = 32; }},
      {"missing positions", "does not exist",
       [](Plan& p, Resources&) { body<Embed>(p, 0).positions = WeightId{99}; }},
      {"embed's scale", "scale is inf",
       [](Plan& p, Resources&) { body<Embed>(p, 0).scale = HUGE_VALF; }},
      {"group", "does not divide", [](Plan& p, Resources&) { body<Norm>(p, 1).group = 48; }},
      {"weights of two groups", "weight: norm is F32[1, 32], expected F32[1, 16]",
       [](Plan&, Resources& r) { r.weights[2].cols = 32; }},
      {"biases of two groups", "bias: norm_bias is F32[1, 32], expected F32[1, 16]",
       [](Plan&, Resources& r) { r.weights[3].cols = 32; }},
      {"one of each", "64 weights and 16 biases",
       [](Plan& p, Resources&) { body<Norm>(p, 1).bias = WeightId{8}; }},
      {"bias with rms", "root mean square",
       [](Plan& p, Resources&) { body<Norm>(p, 1).kind = NormKind::rms; }},
      {"negative eps", "eps is -1", [](Plan& p, Resources&) { body<Norm>(p, 1).eps = -1.0F; }},
      {"eps that is none", "eps is nan", [](Plan& p, Resources&) { body<Norm>(p, 1).eps = NAN; }},
      {"eps of heads", "eps is -1",
       [](Plan& p, Resources&) { body<RopeKv>(p, 2).norm.eps = -1.0F; }},
      {"one head's weights for all", "q_norm: q_norm is F32[1, 8], expected F32[1, 32]",
       [](Plan&, Resources& r) { r.weights[4].cols = 8; }},
      {"two heads' weights", "k_norm: k_norm is F32[1, 12], expected F32[1, 8]",
       [](Plan& p, Resources& r) {
         body<RopeKv>(p, 2).norm.all_heads = false;
         r.weights[5].cols = 12;
       }},
      {"layer norm of values", "values have no layer norm",
       [](Plan& p, Resources&) { body<RopeKv>(p, 2).norm.values = true; }},
      {"norm of shared keys", "k_norm without keys",
       [](Plan& p, Resources& r) {
         body<RopeKv>(p, 2).shared_kv = true;
         r.kv_layers[0].head_dim = r.kv_layers[0].value_dim = 16;
         r.weights[4].cols = 64;
         p.values[2].width = 64;
       }},
      {"keys and values that are another's", "has width 64, expected 32",
       [](Plan& p, Resources&) { body<RopeKv>(p, 2).shared_kv = true; }},
      {"negative clip", "clip is -1", [](Plan& p, Resources&) { body<RopeKv>(p, 2).clip = -1.0F; }},
      {"clip that is none", "clip is nan",
       [](Plan& p, Resources&) { body<RopeKv>(p, 2).clip = NAN; }},
      {"activation's width", "has width 64, expected 32",
       [](Plan& p, Resources&) { body<Activate>(p, 4).x = ValueId{2}; }},
      {"activation into q8", "expected f32",
       [](Plan& p, Resources&) { p.values[4].type = ValueType::q8; }},
      {"cap's width", "has width 64, expected 32",
       [](Plan& p, Resources&) { body<Softcap>(p, 5).x = ValueId{2}; }},
      {"no cap", "cap is 0", [](Plan& p, Resources&) { body<Softcap>(p, 5).cap = 0.0F; }},
      {"negative cap", "cap is -2", [](Plan& p, Resources&) { body<Softcap>(p, 5).cap = -2.0F; }},
      {"infinite cap", "cap is inf",
       [](Plan& p, Resources&) { body<Softcap>(p, 5).cap = HUGE_VALF; }},
  };
  for (const BadCase& bad : cases) expect_refused(bad, wide_plan(), wide_resources());
}

TEST(Verify, NamesWhatIsWrongWithExperts) {
  const BadCase cases[] = {
      {"logits in q8", "expected f32",
       [](Plan& p, Resources&) {
         std::swap(p.ops[0], p.ops[1]);
         body<Route>(p, 1).logits = ValueId{3};
       }},
      {"routes' width", "has width 4, expected 6",
       [](Plan& p, Resources&) { body<Route>(p, 0).top_k = 3; }},
      {"router's bias", "bias: route_bias is F32[1, 7], expected F32[1, 8]",
       [](Plan&, Resources& r) { r.weights[0].cols = 7; }},
      {"experts' scales", "expert_scales: scales is F32[1, 9], expected F32[1, 8]",
       [](Plan&, Resources& r) { r.weights[4].cols = 9; }},
      {"router's scale", "scale is inf",
       [](Plan& p, Resources&) { body<Route>(p, 0).scale = HUGE_VALF; }},
      {"no groups", "0 groups of 8 experts",
       [](Plan& p, Resources&) { body<Route>(p, 0).num_groups = 0; }},
      {"groups", "3 groups of 8 experts",
       [](Plan& p, Resources&) { body<Route>(p, 0).num_groups = 3; }},
      {"no chosen groups", "top_groups is 0, of 4",
       [](Plan& p, Resources&) { body<Route>(p, 0).top_groups = 0; }},
      {"chosen groups", "top_groups is 5, of 4",
       [](Plan& p, Resources&) { body<Route>(p, 0).top_groups = 5; }},
      {"nothing chosen", "has width 4, expected 0",
       [](Plan& p, Resources&) { body<Route>(p, 0).top_k = 0; }},
      {"more than there are in the groups", "top_k is 2, of 1 experts",
       [](Plan& p, Resources&) {
         body<Route>(p, 0).num_groups = 8;
         body<Route>(p, 0).top_groups = 1;
       }},
      {"experts", "up has 512 rows for 7 experts",
       [](Plan& p, Resources&) { body<ExpertLinear>(p, 2).num_experts = 7; }},
      {"no experts", "up has 512 rows for 0 experts",
       [](Plan& p, Resources&) { body<ExpertLinear>(p, 2).num_experts = 0; }},
      {"routes of others", "has width 4, expected 6",
       [](Plan& p, Resources&) { body<ExpertLinear>(p, 2).top_k = 3; }},
      {"no chosen experts", "top_k is 0",
       [](Plan& p, Resources&) { body<ExpertLinear>(p, 2).top_k = 0; }},
      {"results' width", "has width 128, expected 256",
       [](Plan& p, Resources&) { body<ExpertLinear>(p, 2).num_experts = 4; }},
      {"x of neither width", "has width 64, expected 96",
       [](Plan&, Resources& r) { r.weights[3].cols = 48; }},
      {"experts' bias", "bias: up_bias is F32[1, 64], expected F32[1, 512]",
       [](Plan&, Resources& r) { r.weights[2].cols = 64; }},
      {"q8 with plain experts", "block-quantised",
       [](Plan&, Resources& r) { r.weights[1].dtype = DType::BF16; }},
      {"q8 rounded", "f16_inputs with q8",
       [](Plan& p, Resources&) { body<ExpertLinear>(p, 2).f16_inputs = true; }},
      {"no type of experts", "no weight type",
       [](Plan&, Resources& r) { r.weights[1].dtype = DType::I32; }},
      {"GLU without groups", "0 groups do not divide the width 64",
       [](Plan& p, Resources&) { body<Glu>(p, 3).groups = 0; }},
      {"GLU's groups", "3 groups do not divide the width 64",
       [](Plan& p, Resources&) { body<Glu>(p, 3).groups = 3; }},
      {"alpha", "alpha is nan", [](Plan& p, Resources&) { body<Glu>(p, 3).alpha = NAN; }},
      {"limit", "limit is -7", [](Plan& p, Resources&) { body<Glu>(p, 3).limit = -7.0F; }},
      {"offset", "up_offset is inf",
       [](Plan& p, Resources&) { body<Glu>(p, 3).up_offset = HUGE_VALF; }},
      {"sum of others", "has width 128, expected 2",
       [](Plan& p, Resources&) { body<Combine>(p, 5).out = ValueId{7}; }},
      {"sum's residual", "has width 8, expected 64",
       [](Plan& p, Resources&) { body<Combine>(p, 5).residual = ValueId{0}; }},
      {"sum's scale", "scale is nan", [](Plan& p, Resources&) { body<Combine>(p, 5).scale = NAN; }},
      {"sum's norm", "ops are drawn into it",
       [](Plan& p, Resources&) { body<Combine>(p, 5).norm = NormOut{.out = ValueId{7}}; }},
      {"gate's width", "value 0 has width 8: elements 0 to 64 are not there",
       [](Plan& p, Resources&) { body<Gate>(p, 6).gate = ValueId{0}; }},
      {"gated elements", "value 8 has width 64: elements 1 to 65 are not there",
       [](Plan& p, Resources&) { body<Gate>(p, 6).x_offset = 1; }},
      {"gate in q8", "expected f32",
       [](Plan& p, Resources&) { body<Gate>(p, 6).gate = ValueId{3}; }},
  };
  for (const BadCase& bad : cases) expect_refused(bad, expert_plan(), expert_resources());
}

// Three streams of 8 elements, as a layer passes them on.
Resources stream_resources() { return {.weights = {{"scale", DType::F32, 1, 8}}, .kv_layers = {}}; }

Plan stream_plan() {
  Plan p{.name = "streams", .max_columns = 4};
  for (const auto& [name, width] :
       {std::pair("first", 8), std::pair("rest", 16), std::pair("matched", 16),
        std::pair("coefs", 9), std::pair("out", 8), std::pair("out_rest", 16),
        std::pair("correction", 3), std::pair("next", 8), std::pair("next_rest", 16),
        std::pair("scaled", 8), std::pair("sum", 16), std::pair("mean", 8), std::pair("glu", 4)}) {
    p.values.push_back({name, ValueType::f32, Rows::columns, static_cast<uint32_t>(width)});
  }
  p.inputs = {ValueId{0}, ValueId{1}, ValueId{3}, ValueId{6}};
  const auto add = [&](const OpBody& body) {
    p.ops.push_back({body, KernelClass::decode, fmt::format("op{}", p.ops.size())});
  };
  add(StreamMatch{ValueId{0}, ValueId{1}, ValueId{2}, 1e-5F});
  add(StreamPredict{ValueId{0}, ValueId{2}, ValueId{3}, ValueId{4}, ValueId{5}});
  add(StreamCorrect{.first = ValueId{4},
                    .rest = ValueId{5},
                    .y = ValueId{0},
                    .coefs = ValueId{6},
                    .scale = WeightId{0},
                    .out = ValueId{7},
                    .out_rest = ValueId{8},
                    .scaled = ValueId{9}});
  add(Add{.a = ValueId{8}, .b = ValueId{9}, .out = ValueId{10}});
  add(StreamMatch{ValueId{7}, ValueId{10}, ValueId{11}, 1e-5F, true});
  add(Glu{.x = ValueId{11}, .out = ValueId{12}, .cutoff = 0.5F});
  return p;
}

TEST(Verify, AcceptsAndPrintsStreams) {
  const Plan plan = stream_plan();
  verify(plan, stream_resources());
  const std::string text = to_string(plan, stream_resources());
  for (const char* part :
       {"%2 f32[k, 16] = stream_match %0 %1 floor=1e-05", "= stream_predict %0 %2 %3 rest=%5",
        "= stream_correct %4 %5 %0 %6 scale=scale:F32[1, 8] rest=%8 scaled=%9", "= add %8 %9",
        "%11 f32[k, 8] = stream_match %7 %10 floor=1e-05 mean", "= glu %11 silu cutoff=0.5"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(Verify, NamesWhatIsWrongWithStreams) {
  const BadCase cases[] = {
      {"no streams", "is not of streams of 8", [](Plan& p, Resources&) { p.values[1].width = 12; }},
      {"floor", "floor is -1", [](Plan& p, Resources&) { body<StreamMatch>(p, 0).floor = -1.0F; }},
      {"mean's width", "has width 16, expected 8",
       [](Plan& p, Resources&) { body<StreamMatch>(p, 0).mean = true; }},
      {"coefs", "has width 9, expected 4",
       [](Plan& p, Resources&) { body<StreamPredict>(p, 1).rest = ValueId{0}; }},
      {"correction", "has width 9, expected 3",
       [](Plan& p, Resources&) { body<StreamCorrect>(p, 2).coefs = ValueId{3}; }},
      {"scale", "scale: scale is F32[1, 9], expected F32[1, 8]",
       [](Plan&, Resources& r) { r.weights[0].cols = 9; }},
      {"written twice", "written from",
       [](Plan& p, Resources&) { body<StreamCorrect>(p, 2).scaled = ValueId{7}; }},
      {"part of a sum", "has width 3, expected 16",
       [](Plan& p, Resources&) { body<Add>(p, 3).b = ValueId{6}; }},
      {"cutoff", "cutoff is nan", [](Plan& p, Resources&) { body<Glu>(p, 5).cutoff = NAN; }},
  };
  for (const BadCase& bad : cases) expect_refused(bad, stream_plan(), stream_resources());
}

}  // namespace
}  // namespace wisp::plan
