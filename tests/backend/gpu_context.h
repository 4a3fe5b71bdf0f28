// The devices that GPU tests share: they are slow to make, and keep what they compiled.
#pragma once

#include <memory>

#include "backend/gpu/backend.h"

namespace wisp::backend::selftest {

// plain: every optional feature of the adapter is switched off.
inline std::shared_ptr<GpuContext> shared_context(bool plain = false) {
  static std::shared_ptr<GpuContext> contexts[2];
  if (!contexts[plain]) {
    gpu::DeviceOptions options;
    options.mask = [plain](gpu::Capabilities& c) {
      if (!plain) return;
      c.f16 = c.subgroups = c.packed_dot = c.immediates = false;
      c.matrices.clear();
    };
    contexts[plain] = std::make_shared<GpuContext>(options);
  }
  return contexts[plain];
}

}  // namespace wisp::backend::selftest
