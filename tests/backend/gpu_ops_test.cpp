// Every op case on the GPU: against the plain reference, and bit by bit against its columns one at
// a time.
#include <gtest/gtest.h>

#include "backend/selftest/check.h"
#include "gpu_context.h"

namespace wisp::backend::selftest {
namespace {

const std::vector<OpCase>& all_cases() {
  static const std::vector<OpCase> cases = op_cases();
  return cases;
}

void check(const OpCase& op_case, const Mask& mask = {"", nullptr}) {
  const auto make = [&] { return make_gpu_backend({.context = shared_context(mask)}); };
  EXPECT_EQ(check_case(op_case, make), "");
}

class GpuOps : public testing::TestWithParam<size_t> {};

TEST_P(GpuOps, MatchReferenceAndColumnsAlone) { check(all_cases()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(Cases, GpuOps, testing::Range<size_t>(0, all_cases().size()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace wisp::backend::selftest
