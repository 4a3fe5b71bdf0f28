// The table that tools/embed_kernels.py generates from kernels/ at build time.
#pragma once

#include <span>
#include <string_view>

namespace wisp::gpu {

struct EmbeddedKernel {
  std::string_view file;  // relative to kernels/, '/' between folders
  std::string_view text;
};

// Sorted by file.
std::span<const EmbeddedKernel> embedded_kernels();

}  // namespace wisp::gpu
