// The choice of kernels as a table that people read.
#pragma once

#include <string>
#include <vector>

#include "gpu/capabilities.h"

namespace wisp::backend::selftest {

// A variant of a kernel and when it runs.
struct KernelLine {
  std::string op;            // "linear"
  std::string kernel_class;  // "prefill" or "decode"
  std::string weights;       // "q4_0"; empty: none
  std::string rows;          // columns or logit rows of a step that it serves: "1", "3-4", "5+"
  std::string file;          // of kernels/
  std::string variant;       // workgroup size and tile
};

// What an adapter with these capabilities takes for the ops of the self-test's cases, sorted by
// all fields.
std::vector<KernelLine> kernel_lines(const gpu::Capabilities& capabilities);

}  // namespace wisp::backend::selftest
