// Checking op cases on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "backend/selftest/check.h"
#include "gpu_context.h"

namespace wisp::backend::selftest {

inline const std::vector<OpCase>& all_cases() {
  static const std::vector<OpCase> cases = op_cases();
  return cases;
}

// Against the plain reference, and bit by bit against its columns one at a time.
inline void check(const OpCase& op_case, const Mask& mask = {"", nullptr}) {
  const auto make = [&] { return make_gpu_backend({.context = shared_context(mask)}); };
  EXPECT_EQ(check_case(op_case, make), "");
}

}  // namespace wisp::backend::selftest
