// The table that --profile prints.
#pragma once

#include <string>

#include "backend/backend.h"

namespace wisp::cli {

// Ops with their count, total, mean and share; then whole steps, and the processor's part of them.
std::string profile_text(const backend::Profile& profile);

}  // namespace wisp::cli
