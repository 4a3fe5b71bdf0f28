// Choosing a token from logits on the host.
#pragma once

#include <cstdint>
#include <span>

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

  bool greedy() const { return temperature <= 0.0F && repeat_penalty == 1.0F; }
};

// Throws Error naming the option that is out of its range.
void check(const SamplingOptions& options);

// `history`: prompt and generated tokens so far. The random number depends on (seed, position)
// alone.
int32_t sample(std::span<const float> logits, std::span<const int32_t> history, uint32_t position,
               const SamplingOptions& options);

}  // namespace wisp::engine
