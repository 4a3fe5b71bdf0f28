// The CPU backend: the oracle of the GPU kernels, and the fallback where there is no GPU.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/backend.h"

namespace wisp::backend {

// `threads`: how many run an op, the caller's included; 0: one a processor. Weights are used where
// they lie; submit runs the step before it returns. Throws Error when the processor lacks the least
// vector instructions (SSE4 on x86).
std::unique_ptr<Backend> make_cpu_backend(size_t threads);

}  // namespace wisp::backend
