// Every op case on the CPU: against the reference, and bit by bit over threads and columns.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/backend.h"
#include "backend/selftest/check.h"

namespace wisp::backend::selftest {
namespace {

const std::vector<OpCase>& all_cases() {
  static const std::vector<OpCase> cases = op_cases();
  return cases;
}

CaseRun run_on_cpu(const OpCase& op_case, size_t threads) {
  return run_case(*make_cpu_backend(threads), op_case);
}

class CpuOps : public ::testing::TestWithParam<size_t> {
 protected:
  const OpCase& op_case() const { return all_cases()[GetParam()]; }
};

TEST_P(CpuOps, MatchReferenceAndColumnsAlone) {
  EXPECT_EQ(check_case(op_case(), [] { return make_cpu_backend(2); }), "");
}

TEST_P(CpuOps, BitsDoNotDependOnThreads) {
  const CaseRun run = run_on_cpu(op_case(), 1);
  EXPECT_EQ(differing_bits(op_case(), run, run_on_cpu(op_case(), 3)), "");
}

INSTANTIATE_TEST_SUITE_P(All, CpuOps, ::testing::Range(size_t{0}, all_cases().size()),
                         [](const auto& info) { return all_cases()[info.param].name; });

TEST(CpuBackend, StoresLatentsOnce) {
  const auto c = std::ranges::find(all_cases(), "latent_tiny_decode_F16", &OpCase::name);
  ASSERT_NE(c, all_cases().end());
  const auto backend = make_cpu_backend(1);
  run_case(*backend, *c);
  // Halves of a latent of 32 and a rotated part of 8.
  EXPECT_EQ(backend->info().kv_bytes, uint64_t{c->num_pages} * plan::kPageTokens * 40 * 2);
}

}  // namespace
}  // namespace wisp::backend::selftest
