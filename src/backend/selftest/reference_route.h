// Route in double precision, written apart from the backends.
#pragma once

#include <vector>

#include "plan/op.h"

namespace wisp::backend::selftest {

// One row of Route's output for one row of logits; `bias` may be empty.
std::vector<double> route_reference(const plan::Route& op, const std::vector<double>& logits,
                                    const std::vector<double>& bias);

}  // namespace wisp::backend::selftest
