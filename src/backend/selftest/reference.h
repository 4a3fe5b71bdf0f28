// A plain interpreter of plans in double precision, written from the comments of plan/op.h: what
// every backend is measured against.
#pragma once

#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {

// Results are rounded to the types of the values.
CaseRun run_reference(const OpCase& op_case);

}  // namespace wisp::backend::selftest
