// What a self-test asks of a backend.
#pragma once

#include <string>

#include "backend/create.h"
#include "backend/selftest/op_case.h"

namespace wisp::backend::selftest {

// Runs the case on a fresh backend, and its columns one at a time on another. Empty, or a line that
// tells where the results leave the bounds of the reference, or where bits depend on what else is
// in a step. Throws Error when a backend cannot run it.
std::string check_case(const OpCase& op_case, const Factory& make);

}  // namespace wisp::backend::selftest
