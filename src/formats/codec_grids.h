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

// Grids: an entry is 8 values (4 for IQ3), one a byte, value i in bits 8i..8i+7; so the bytes of a
// grid are its entries' values in their order. Every grid has as many entries as its index has bits
// for: an index made of a block's bits cannot leave it.
extern const std::array<uint64_t, 256> kIq2XxsGrid;  // values 8, 25, 43
extern const std::array<uint64_t, 512> kIq2XsGrid;   // the same values
extern const std::array<uint64_t, 1024> kIq2SGrid;   // the same values
extern const std::array<uint32_t, 256> kIq3XxsGrid;  // values 4, 12, 20, ..., 52, 62
extern const std::array<uint32_t, 512> kIq3SGrid;    // values 1, 3, 5, ..., 15
extern const std::array<uint64_t, 2048> kIq1Grid;    // IQ1_S and IQ1_M: values -1, 0, 1 as i8

}  // namespace wisp::formats
