// Rope tables, computed once at load.
#pragma once

#include <array>
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

// A position of M-RoPE: time, height, width. Text has the same number on all axes.
using RopePosition = std::array<uint32_t, 3>;

// By which axis of a position each of rotary_dim / 2 pairs turns: all by time without sections.
// Sections that take turns give axis 1 the pairs 1, 4, 7, ... and axis 2 the pairs 2, 5, 8, ..., as
// many as they say, and time the others.
std::vector<uint8_t> rope_axes(const RopeConfig& rope);

// f32 [positions, rotary_dim]: rows as of rope_table, each pair by the axis that rope_axes gives
// it. A position that is p on all axes has the very bits of rope_table's row p.
std::vector<float> rope_rows(const RopeConfig& rope, std::span<const RopePosition> positions,
                             std::span<const float> freq_factors);

// Yarn's amplitude for a context stretched by `factor`: 1 + 0.1 * mscale * ln(factor).
double yarn_mscale(double factor, double mscale);

// f32 [positions]: 1 + beta * ln(1 + floor(position / context)), Ministral's long-context query
// scaling.
std::vector<float> query_scale_table(float beta, uint32_t context, uint32_t positions);

}  // namespace wisp::model
