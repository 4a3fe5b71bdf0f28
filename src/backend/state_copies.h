// What both backends ask of a step's copies of states.
#pragma once

#include "backend/backend.h"

namespace wisp::backend {

// Throws Error naming a row that does not exist or that two copies touch.
void check_copies(const Step& step, uint32_t num_states);

}  // namespace wisp::backend
