// What the kernels of Sample read about a row, and what they keep between their dispatches.
#pragma once

#include <cstdint>

#include "backend/sampling.h"

namespace wisp::backend::webgpu {

// The layout of RowSampling in kernels/sample/row.wgsl.
struct SamplingWords {
  uint32_t level = 0;  // how many dispatches the row needs: 0 is greedy
  uint32_t top_k = 0;
  uint32_t top_p = 0;
  float min_p = 1.0F;
  float scale = 0.0F;
  float limit = 0.0F;
  uint32_t random = 0;
};
SamplingWords sampling_words(const RowSampling& sampling, uint32_t vocab_size);

// Levels from which on a row is drawn, cut by one of top-k and top-p, and by both.
inline constexpr uint32_t kLevelDraw = 1;
inline constexpr uint32_t kLevelCut = 2;
inline constexpr uint32_t kLevelBothCuts = 3;

// Elements of a row of logits that a workgroup reads: to find the best one, and otherwise.
inline constexpr uint32_t kBestChunk = 4096;
inline constexpr uint32_t kSampleChunk = 1024;

// Histograms of a row, and how many of them find the first cut; bytes of all of them, and of the
// selections (kernels/sample/row.wgsl).
inline constexpr uint32_t kSampleStages = 7;
inline constexpr uint32_t kFirstCutStages = 4;
inline constexpr uint64_t kHistogramsBytes = uint64_t{kSampleStages} * 3 * 256 * 4;
inline constexpr uint64_t kSelectionsBytes = uint64_t{8} * 24;

}  // namespace wisp::backend::webgpu
