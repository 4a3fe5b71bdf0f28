// The choice of kernels as a table that people read.
#pragma once

#include <string>
#include <vector>

#include "backend/selftest/op_case.h"
#include "gpu/capabilities.h"
#include "gpu/kernel.h"

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

// The different kernels that a step of the case takes, in the order in which they run first.
std::vector<gpu::KernelSpec> step_kernels(const OpCase& op_case, const Step& step,
                                          const gpu::Capabilities& capabilities);

// "256 invocations, TEAM 32, COL_TILE 4": what tells variants of a kernel file apart.
std::string variant_text(const gpu::KernelSpec& spec);

}  // namespace wisp::backend::selftest
