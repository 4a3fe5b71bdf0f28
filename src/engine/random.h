// Counter-based random numbers: a value depends on its key alone, never on how many were drawn
// before.
#pragma once

#include <cstdint>

namespace wisp::engine {

// The output function of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014): a bijection of 64 bits in which every input bit reaches every output bit.
constexpr uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// 64 random bits for (seed, counter). The seed is mixed first, so that neighbouring seeds do not
// give shifted streams.
constexpr uint64_t random_bits(uint64_t seed, uint64_t counter) {
  return mix_bits(mix_bits(seed + 0x9e3779b97f4a7c15ULL) + (counter + 1) * 0x9e3779b97f4a7c15ULL);
}

// Uniform in [0, 1): the upper 53 bits.
constexpr double random_unit(uint64_t seed, uint64_t counter) {
  return static_cast<double>(random_bits(seed, counter) >> 11) * 0x1.0p-53;
}

}  // namespace wisp::engine
