// What a device can do, as one value. Kernels are chosen from it alone; callers may mask it (switch
// optional features off) to run the fallbacks on any machine.
#pragma once

#include <cstdint>
#include <vector>

namespace wisp::gpu {

enum class MatrixType { f16, f32 };

// One cooperative-matrix shape that gave right results on this device: C[m,n] += A[m,k] * B[k,n].
struct MatrixConfig {
  uint32_t m = 0, n = 0, k = 0;
  MatrixType input = MatrixType::f16;        // of A and B
  MatrixType accumulator = MatrixType::f32;  // of C
  bool operator==(const MatrixConfig&) const = default;
};

struct Capabilities {
  // Optional features. Masking sets them to false or empties the list.
  bool f16 = false;                // `enable f16;`: f16 arithmetic and storage
  bool subgroups = false;          // subgroup built-ins (shuffles, ballots, sums)
  bool packed_dot = false;         // dot4I8Packed compiles; docs/webgpu.md says where it is native
  bool immediates = false;         // small parameters recorded into the command buffer
  bool timestamps = false;         // timestamp queries at the ends of a compute pass
  bool unchecked_shaders = false;  // modules without bounds checks and loop bounding
  std::vector<MatrixConfig> matrices;  // cooperative matrices; empty: none

  // Facts of the provider's WGSL front end.
  bool subgroups_need_enable = false;  // whether `enable subgroups;` must be there (else rejected)

  // Sizes. Subgroup sizes are 0 without subgroups; min == max where the size is fixed.
  uint32_t subgroup_min_size = 0;
  uint32_t subgroup_max_size = 0;
  uint32_t max_immediate_size = 0;   // bytes
  uint64_t max_buffer_size = 0;      // bytes
  uint64_t max_binding_size = 0;     // bytes of one storage binding
  uint32_t max_storage_buffers = 0;  // per stage, that is per kernel
  uint32_t workgroup_memory = 0;     // bytes of var<workgroup>
  uint32_t max_invocations = 0;      // per workgroup
  uint32_t max_workgroups = 0;       // per dimension of a dispatch
  uint32_t storage_alignment = 256;  // bytes, of a storage binding's offset
  uint32_t uniform_alignment = 256;  // bytes, of a uniform binding's (dynamic) offset

  bool is_cpu_adapter = false;  // a CPU driver such as lavapipe

  bool has_matrix(const MatrixConfig& config) const {
    for (const MatrixConfig& one : matrices) {
      if (one == config) return true;
    }
    return false;
  }
};

}  // namespace wisp::gpu
