#include "backend/selftest/check.h"

#include "backend/selftest/reference.h"

namespace wisp::backend::selftest {

std::string check_case(const OpCase& op_case, const Factory& make) {
  const CaseRun together = run_case(*make(), op_case);
  std::string text = difference(op_case, together, run_reference(op_case));
  if (!text.empty()) return text;
  const CaseRun alone = run_case(*make(), columns_alone(op_case));
  return differing_bits(op_case, together, join_columns(op_case, alone));
}

}  // namespace wisp::backend::selftest
