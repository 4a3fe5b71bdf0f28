// Choosing a token from a row of logits: the one definition that the op Sample, its kernels and the
// host follow.
//
// The cuts leave a prefix of the tokens sorted by logit, of equals the lowest id first: top-k, then
// top-p by the probabilities at temperature 1 of what top-k left, then min-p. From what is left a
// token is drawn with the probabilities at the temperature.
//
// Probabilities are integer masses: e^((logit - best) / temperature) in units of 2^-31. They are
// made by operations whose results are exact or rounded the same way everywhere, and sums of
// integers do not depend on their order, so every backend chooses the same token from the same
// logits. A mass is within half a unit and a relative error of 2e-7 * (1 + (best - logit) /
// temperature); a token of less than 2^-32 of the best token's probability is never drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace wisp::backend {

// How one row chooses its token.
struct RowSampling {
  float temperature = 0.0F;  // finite; 0: greedy, and nothing below counts
  uint32_t top_k = 0;        // 0, or the size of the vocabulary and more: off
  float top_p = 1.0F;        // 0..1; 1: off
  float min_p = 0.0F;        // 0..1; 0: off
  uint32_t random = 0;       // the random number in [0, 1), in units of 2^-32

  bool greedy() const { return temperature <= 0.0F; }
  bool cuts_top_k(size_t vocab_size) const { return top_k > 0 && top_k < vocab_size; }
  bool cuts_top_p() const { return top_p < 1.0F; }
};

// A temperature as masses need it: half the distance to the best logit, but at most `limit`, times
// `scale` is the logarithm of 1 / mass to base 2, in units of 2^-24.
struct MassScale {
  float scale = 0.0F;
  float limit = 0.0F;  // beyond it masses are 0
};
// temperature > 0; below 2^-64 it counts as 2^-64.
MassScale mass_scale(float temperature);

// The mass of a token. `logit` is at most `best`, which is finite.
uint32_t mass(float best, float logit, const MassScale& scale);

// top_p < 1 in units of 2^-32, and the least sum of masses that reaches this share of `total`.
uint32_t top_p_share(float top_p);
uint64_t share_of(uint64_t total, uint32_t share);

// min-p keeps logits from best + this on; nullopt: all.
std::optional<float> min_p_offset(float min_p);

// The token of a row that is not greedy. `best` is the largest logit; it is finite, none is NaN.
uint32_t sample(std::span<const float> logits, float best, const RowSampling& sampling);

}  // namespace wisp::backend
