// What webgpu_rs, the default WebGPU library, offers beyond webgpu.h.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <webgpu/webgpu.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WispScalar_F16 = 1, WispScalar_F32 = 2, WispScalar_I32 = 3, WispScalar_U32 = 4 };

// C[m,n] += A[m,k] * B[k,n] on cooperative matrices, with A and B of the type `input`.
typedef struct WispMatrixConfig {
  uint32_t m, n, k;
  uint32_t input;
  uint32_t accumulator;
} WispMatrixConfig;

// Number of the adapter's configurations, 0 without WGPUNativeFeature_CooperativeMatrix. The first
// `capacity` of them are written to `configs`, which may be NULL.
size_t wispAdapterGetMatrixConfigs(WGPUAdapter adapter, WispMatrixConfig* configs, size_t capacity);

#ifdef __cplusplus
}
#endif
