// Every op case on the GPU: against the plain reference, and bit by bit against its columns one at
// a time.
#include "gpu_ops.h"

#include <gtest/gtest.h>

namespace wisp::backend::selftest {
namespace {

class GpuOps : public testing::TestWithParam<size_t> {};

TEST_P(GpuOps, MatchReferenceAndColumnsAlone) { check(all_cases()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(Cases, GpuOps, testing::Range<size_t>(0, all_cases().size()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace wisp::backend::selftest
