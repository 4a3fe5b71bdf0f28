// Rope tables, computed once at load.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace wisp::model {

// f32 [positions, rotary_dim]: cos at 2i and sin at 2i + 1 of position * inv_freq[i], times the
// attention factor of the scaling. Frequencies follow transformers' modeling_rope_utils: linear
// divides by the factor; llama3 (Llama 3.1) blends by wavelength; yarn (Peng et al. 2023) blends by
// rotation count; proportional (Gemma 4) turns only the first pairs. `freq_factors` (GGUF's
// rope_freqs, rotary_dim / 2 of them, or empty) divide the frequencies on top. Throws Error for
// another number of them, or one that is not above 0.
std::vector<float> rope_table(const RopeConfig& rope, uint32_t positions,
                              std::span<const float> freq_factors);

// Yarn's amplitude for a context stretched by `factor`: 1 + 0.1 * mscale * ln(factor).
double yarn_mscale(double factor, double mscale);

// f32 [positions]: 1 + beta * ln(1 + floor(position / context)), Ministral's long-context query
// scaling.
std::vector<float> query_scale_table(float beta, uint32_t context, uint32_t positions);

}  // namespace wisp::model
