// Latent attention: a KV layer whose keys hold its values.
#include <gtest/gtest.h>

#include <functional>

#include "refused.h"

namespace wisp::plan {
namespace {

// Two query heads over a latent of 8 and a rotated part of 4.
Resources latent_resources() {
  return {.weights = {{"rope", formats::DType::F32, 48, 4}}, .kv_layers = {{1, 12, 8, true}}};
}

Plan latent_plan() {
  Plan p{.name = "latent", .max_columns = 4};
  for (const auto& [name, width] :
       {std::pair("q_latent", 16), std::pair("q_rope", 8), std::pair("latent", 8),
        std::pair("k_rope", 4), std::pair("q", 24), std::pair("out", 16)}) {
    p.values.push_back({name, ValueType::f32, Rows::columns, static_cast<uint32_t>(width)});
  }
  p.inputs = {ValueId{0}, ValueId{1}, ValueId{2}, ValueId{3}};
  p.ops = {{LatentKv{.q_latent = ValueId{0},
                     .q_rope = ValueId{1},
                     .latent = ValueId{2},
                     .k_rope = ValueId{3},
                     .out = ValueId{4},
                     .kv_layer = KvLayerId{0},
                     .num_heads = 2,
                     .rope = WeightId{0}},
            KernelClass::decode, "kv"},
           {Attention{.q = ValueId{4}, .out = ValueId{5}, .kv_layer = KvLayerId{0}, .num_heads = 2},
            KernelClass::decode, "attention"}};
  return p;
}

TEST(Latent, AcceptsAndPrintsKeysThatHoldValues) {
  const Plan plan = latent_plan();
  verify(plan, latent_resources());
  const std::string text = to_string(plan, latent_resources());
  EXPECT_NE(text.find("kv0[1 heads of 12, values their first 8] heads=2"), std::string::npos)
      << text;
}

TEST(Latent, CountsWhatALayerStores) {
  EXPECT_EQ(kv_elements({1, 576, 512, true}), 576U);
  EXPECT_EQ(kv_elements({2, 12, 8}), 40U);
}

TEST(Latent, NamesWhatIsWrong) {
  struct BadCase {
    const char* message;
    std::function<void(Plan&, Resources&)> spoil;
  };
  const BadCase cases[] = {
      {"values of its own", [](Plan&, Resources& r) { r.kv_layers[0].values_in_keys = false; }},
      {"expected one with keys 4 longer",
       [](Plan&, Resources& r) { r.kv_layers[0].value_dim = 12; }},
      {"values of 12 in keys of 8",
       [](Plan&, Resources& r) {
         r.kv_layers[0] = {1, 8, 12, true};
       }},
      {"no values of its own",
       [](Plan& p, Resources&) {
         p.values.push_back({"qkv", ValueType::f32, Rows::columns, 44});
         p.inputs.push_back(ValueId{6});
         p.ops[0].body =
             RopeKv{.qkv = ValueId{6}, .out = ValueId{4}, .kv_layer = KvLayerId{0}, .num_heads = 2};
       }},
  };
  for (const BadCase& bad : cases)
    expect_refused(bad.message, bad.spoil, latent_plan(), latent_resources());
}

}  // namespace
}  // namespace wisp::plan
