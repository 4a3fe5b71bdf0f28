// Turns what the scheduler chose into a backend's step.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "engine/scheduler.h"

namespace wisp::engine {

// The columns of the pieces in their order, with the tokens that the host knows (nullopt: the
// device has it), the logits they want and how to choose
// from them, and the pages that their slots' rows of the block table
// lack; marks those as sent. Call it right after Scheduler::next.
backend::Step make_step(const std::vector<Piece>& pieces);

}  // namespace wisp::engine
