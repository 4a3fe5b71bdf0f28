#include "backend/create.h"

#include "backend/cpu/backend.h"
#include "base/error.h"

namespace wisp::backend {

std::unique_ptr<Backend> create(const CreateOptions& options) {
  if (options.choice == Choice::webgpu) fail("the webgpu backend is not part of this build");
  return make_cpu_backend(options.threads);
}

}  // namespace wisp::backend
