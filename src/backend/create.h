// Choosing a backend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "gpu/capabilities.h"

namespace wisp::backend {

enum class Choice : uint8_t {
  automatic,  // a real GPU, else the CPU backend
  webgpu,     // the best adapter there is, a CPU Vulkan driver too
  cpu,
};

struct CreateOptions {
  Choice choice = Choice::automatic;
  std::string adapter;                             // index or part of the name; empty: the best
  uint32_t threads = 0;                            // CPU backend; 0: one a processor
  std::function<void(gpu::Capabilities&)> mask{};  // see gpu::DeviceOptions; for tests
};

// Makes backends that share a device and what was compiled for it; to be used on one thread.
using Factory = std::function<std::unique_ptr<Backend>()>;

// Throws Error naming the adapters there are when none fits.
Factory make_factory(const CreateOptions& options);
std::unique_ptr<Backend> create(const CreateOptions& options);

}  // namespace wisp::backend
