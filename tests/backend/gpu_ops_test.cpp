// Every op case on the GPU: against the plain reference, and bit by bit against its columns one at a
// time; with all the adapter offers and with every optional feature switched off.
#include <gtest/gtest.h>

#include "backend/gpu/backend.h"
#include "op_harness.h"
#include "reference.h"

namespace wisp::op_test {
namespace {

// Devices are made once a test program: a driver holds memory of each.
std::unique_ptr<backend::Backend> make_backend(bool plain) {
  backend::GpuBackendOptions options;
  if (plain) {
    options.device.mask = [](gpu::Capabilities& c) {
      c.f16 = c.subgroups = c.packed_dot = c.immediates = false;
      c.matrices.clear();
    };
  }
  return backend::make_gpu_backend(options);
}

const std::vector<OpCase>& all_cases() {
  static const std::vector<OpCase> cases = op_cases();
  return cases;
}

class GpuOps : public testing::TestWithParam<size_t> {
 protected:
  const OpCase& op_case() const { return all_cases()[GetParam()]; }
};

TEST_P(GpuOps, MatchReference) {
  const CaseRun run = run_case(*make_backend(false), op_case());
  EXPECT_EQ(difference(op_case(), run, run_reference(op_case())), "");
}

TEST_P(GpuOps, ColumnsAloneGiveTheSameBits) {
  const CaseRun together = run_case(*make_backend(false), op_case());
  const CaseRun alone = run_case(*make_backend(false), columns_alone(op_case()));
  EXPECT_EQ(differing_bits(op_case(), together, join_columns(op_case(), alone)), "");
}

TEST_P(GpuOps, PlainVariantsMatchReference) {
  const CaseRun run = run_case(*make_backend(true), op_case());
  EXPECT_EQ(difference(op_case(), run, run_reference(op_case())), "");
}

TEST_P(GpuOps, PlainVariantsColumnsAloneGiveTheSameBits) {
  const CaseRun together = run_case(*make_backend(true), op_case());
  const CaseRun alone = run_case(*make_backend(true), columns_alone(op_case()));
  EXPECT_EQ(differing_bits(op_case(), together, join_columns(op_case(), alone)), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuOps, testing::Range<size_t>(0, all_cases().size()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace wisp::op_test
