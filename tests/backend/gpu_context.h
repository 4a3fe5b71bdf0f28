// The devices that GPU tests share: they are slow to make, and keep what they compiled.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/gpu/backend.h"
#include "masks.h"

namespace wisp::backend::selftest {

// Without a mask the device has all that the adapter offers.
inline std::shared_ptr<GpuContext> shared_context(const Mask& mask = {"", nullptr}) {
  static std::map<std::string, std::shared_ptr<GpuContext>> contexts;
  std::shared_ptr<GpuContext>& context = contexts[mask.name];
  if (context == nullptr) {
    gpu::DeviceOptions options;
    if (mask.apply != nullptr) options.mask = mask.apply;
    context = std::make_shared<GpuContext>(options);
  }
  return context;
}

}  // namespace wisp::backend::selftest
