// Every op case on the CPU: against the reference, and bit by bit over threads and columns.
#include <gtest/gtest.h>

#include "backend/cpu/backend.h"
#include "op_harness.h"
#include "reference.h"

namespace wisp {
namespace {

const std::vector<op_test::OpCase>& all_cases() {
  static const std::vector<op_test::OpCase> cases = op_test::op_cases();
  return cases;
}

op_test::CaseRun run_on_cpu(const op_test::OpCase& op_case, size_t threads) {
  return op_test::run_case(*backend::make_cpu_backend(threads), op_case);
}

class CpuOps : public ::testing::TestWithParam<size_t> {
 protected:
  const op_test::OpCase& op_case() const { return all_cases()[GetParam()]; }
};

TEST_P(CpuOps, MatchReference) {
  const op_test::CaseRun run = run_on_cpu(op_case(), 2);
  EXPECT_EQ(op_test::difference(op_case(), run, op_test::run_reference(op_case())), "");
}

TEST_P(CpuOps, BitsDoNotDependOnThreads) {
  const op_test::CaseRun run = run_on_cpu(op_case(), 1);
  EXPECT_EQ(op_test::differing_bits(op_case(), run, run_on_cpu(op_case(), 3)), "");
}

TEST_P(CpuOps, BitsDoNotDependOnColumns) {
  const op_test::CaseRun run = run_on_cpu(op_case(), 2);
  const op_test::CaseRun alone = run_on_cpu(op_test::columns_alone(op_case()), 1);
  EXPECT_EQ(op_test::differing_bits(op_case(), run, op_test::join_columns(op_case(), alone)), "");
}

INSTANTIATE_TEST_SUITE_P(All, CpuOps, ::testing::Range(size_t{0}, all_cases().size()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace wisp
