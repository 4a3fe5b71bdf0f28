#include "backend/gpu/codec_tables.h"

#include <array>

#include "formats/codec_grids.h"

namespace wisp::backend::webgpu {
namespace {

using formats::DType;

// A codebook of 16 signed values for bytes of two nibbles: the low one's value in bits 0..7, the
// high one's in bits 16..23 (kernels/codec/nibble_table.wgsl).
constexpr std::array<uint32_t, 256> nibble_pairs(const std::array<int8_t, 16>& values) {
  std::array<uint32_t, 256> table{};
  for (size_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = static_cast<uint8_t>(values[byte & 15]) |
                  static_cast<uint32_t>(static_cast<uint8_t>(values[byte >> 4])) << 16;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kIq4Pairs = nibble_pairs(formats::kIq4Levels);

// Points of values v = -1, 0 or 1 as bytes 8 v + 9 (kernels/codec/ternary_grid.wgsl).
std::array<uint64_t, formats::kIq1Grid.size()> ternary_points() {
  auto points = formats::kIq1Grid;
  for (uint64_t& point : points) {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 8) {
      const auto value = static_cast<int8_t>(point >> shift & 255);
      out |= static_cast<uint64_t>(8 * value + 9) << shift;
    }
    point = out;
  }
  return points;
}

std::span<const std::byte> bytes_of(const auto& table) { return std::as_bytes(std::span(table)); }

}  // namespace

std::span<const std::byte> codec_table(DType dtype) {
  switch (dtype) {
    case DType::IQ4_NL:
    case DType::IQ4_XS:
      return bytes_of(kIq4Pairs);
    case DType::IQ3_XXS:
      return bytes_of(formats::kIq3XxsGrid);
    case DType::IQ3_S:
      return bytes_of(formats::kIq3SGrid);
    case DType::IQ2_XXS:
      return bytes_of(formats::kIq2XxsGrid);
    case DType::IQ2_XS:
      return bytes_of(formats::kIq2XsGrid);
    case DType::IQ2_S:
      return bytes_of(formats::kIq2SGrid);
    case DType::IQ1_S:
    case DType::IQ1_M: {
      static const auto kPoints = ternary_points();
      return bytes_of(kPoints);
    }
    default:
      return {};
  }
}

}  // namespace wisp::backend::webgpu
