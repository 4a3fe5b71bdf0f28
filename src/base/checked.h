// Checked integer arithmetic for sizes that come from files or from the user.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace wisp {

// a * b; throws Error naming `what` when it does not fit in 64 bits.
inline uint64_t checked_mul(uint64_t a, uint64_t b, std::string_view what) {
  uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail("{}: {} * {} overflows", what, a, b);
  return result;
}

// a + b; throws Error naming `what` when it does not fit in 64 bits.
inline uint64_t checked_add(uint64_t a, uint64_t b, std::string_view what) {
  uint64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) fail("{}: {} + {} overflows", what, a, b);
  return result;
}

// `value` as a T; throws Error naming `what` when T cannot hold it.
template <std::integral T, std::integral V>
T checked_cast(V value, std::string_view what) {
  if (!std::in_range<T>(value)) fail("{}: {} is out of range", what, value);
  return static_cast<T>(value);
}

constexpr uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
constexpr uint64_t round_up(uint64_t a, uint64_t b) { return ceil_div(a, b) * b; }

}  // namespace wisp
