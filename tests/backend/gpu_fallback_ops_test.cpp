// The kernels for adapters that lack optional features, checked as in gpu_ops_test.cpp: one shape
// of each kind of kernel with all of them switched off, and some with one feature less.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_ops.h"

namespace wisp::backend::selftest {
namespace {

constexpr std::string_view kShownTypes[] = {"F32",  "F16",  "BF16", "Q8_0",   "Q4_0",  "Q4_1",
                                            "Q4_K", "Q6_K", "Q2_K", "I4_128", "F8_128"};

// Most of the time goes into compiling kernels for the CPU driver.
std::vector<size_t> plain_cases() {
  std::vector<size_t> list;
  for (size_t i = 0; i < all_cases().size(); ++i) {
    const std::string& name = all_cases()[i].name;
    const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    if (has("expert_linear") && !has("x83") && !has("Q4_0_int8_decode") && !has("Q6_K_exact")) {
      continue;
    }
    if (has("linear") && !has("expert") && !has("130x") && !has("37x83")) continue;
    // Types differ by their codecs, which know nothing of features: one of each kind of sum.
    const bool shown = std::ranges::any_of(kShownTypes, [&](std::string_view type) {
      return name.starts_with(fmt::format("linear_{}_", type));
    });
    if (name.starts_with("linear_") && !shown) continue;
    if (has("fused") && !has("fused_norm_Q4_1") && !has("fused_glu_Q8_0") &&
        !has("fused_layer_norm") && !has("fused_activate_Q8_0")) {
      continue;
    }
    const bool usual = has("F16") && (has("smollm") || has("odd") || has("long_window"));
    const bool norms = has("rope_all_heads_clip") || has("rope_layer_after");
    if (has("attention") && !usual && !norms) continue;
    if (has("latent_v") && !has("v2_lite_decode_F16") && !has("v3_prefill_F32")) continue;
    list.push_back(i);
  }
  return list;
}

class PlainGpuOps : public testing::TestWithParam<size_t> {};

TEST_P(PlainGpuOps, MatchReferenceAndColumnsAlone) { check(all_cases()[GetParam()], kNoFeatures); }

class MaskedGpuOps : public testing::TestWithParam<Mask> {};

TEST_P(MaskedGpuOps, MatchReferenceAndColumnsAlone) {
  size_t found = 0;
  for (const char* start :
       {"linear_Q4_0_int8_decode_130x", "linear_Q6_K_int8_decode_5x", "linear_F16_exact_decode_37x",
        "linear_Q4_0_half_prefill_130x", "attention_smollm_decode_F16",
        "attention_smollm_prefill_F16_half", "norm_rms_576", "quantize_576", "argmax_4099",
        "route_sigmoid_groups", "expert_linear_Q4_0_int8_decode_4_of_9",
        "expert_linear_BF16_half_prefill_2"}) {
    for (const OpCase& op_case : all_cases()) {
      if (!op_case.name.starts_with(start)) continue;
      ++found;
      check(op_case, GetParam());
    }
  }
  EXPECT_EQ(found, 12U);
}

INSTANTIATE_TEST_SUITE_P(Masks, MaskedGpuOps, testing::ValuesIn(kOneFeatureLess),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Cases, PlainGpuOps, testing::ValuesIn(plain_cases()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace wisp::backend::selftest
