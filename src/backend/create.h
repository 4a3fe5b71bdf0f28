// Choosing a backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.h"

namespace wisp::backend {

enum class Choice : uint8_t {
  automatic,  // a real GPU, else the CPU backend
  webgpu,     // the best adapter there is, a CPU Vulkan driver too
  cpu,
};

struct CreateOptions {
  Choice choice = Choice::automatic;
  std::string adapter;   // index or part of the name; empty: the best
  uint32_t threads = 0;  // CPU backend; 0: one a processor
};

// Throws Error naming the adapters there are when none fits.
std::unique_ptr<Backend> create(const CreateOptions& options);

}  // namespace wisp::backend
