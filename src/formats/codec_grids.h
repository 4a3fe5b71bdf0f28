// Tables that block formats name values by: what the formats define, one copy for decoders and for
// kernels, which take a table's bytes as they are.
#pragma once

#include <array>
#include <cstdint>

namespace wisp::formats {

// The 16 values of a 4-bit level of IQ4_NL and IQ4_XS.
inline constexpr std::array<int8_t, 16> kIq4Levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

// The 16 values of a 4-bit float (e2m1: sign, two bits of exponent, one of mantissa), doubled to be
// integers. Level 8, the negative zero, is 0.
inline constexpr std::array<int8_t, 16> kFp4Levels = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace wisp::formats
