// How a request chooses its tokens, and choosing one from logits on the host.
#pragma once

#include <cstdint>
#include <span>

#include "backend/sampling.h"

namespace wisp::engine {

// temperature 0: greedy, ties to the lowest id. Otherwise the steps run in this order: repetition
// penalty, top-k, top-p, min-p, temperature, draw.
struct SamplingOptions {
  float temperature = 0.0F;
  uint32_t top_k = 0;  // 0: off
  float top_p = 1.0F;  // 1: off
  float min_p = 0.0F;  // 0: off
  float repeat_penalty =
      1.0F;  // 1: off; divides positive and multiplies negative logits of recent tokens
  uint32_t repeat_last_n = 64;  // tokens that the penalty looks back at
  uint64_t seed = 0;

  // Whether a choice depends on the tokens before it: then the host makes it, else the backend.
  bool needs_history() const { return repeat_penalty != 1.0F; }
};

// Throws Error naming the option that is out of its range.
void check(const SamplingOptions& options);

// What a backend needs to choose the token after `position`, the penalty apart. The random number
// depends on (seed, position) alone.
backend::RowSampling row_sampling(const SamplingOptions& options, uint32_t position);

// Chooses on the host; what the backend would choose where it can. `history`: prompt and generated
// tokens so far. A token of -inf is never chosen. Throws Error naming a logit that is a NaN or
// +inf.
int32_t sample(std::span<const float> logits, std::span<const int32_t> history, uint32_t position,
               const SamplingOptions& options);

}  // namespace wisp::engine
