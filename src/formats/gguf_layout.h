// Constants that reading and writing GGUF share.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "formats/metadata.h"

namespace wisp::formats {

inline constexpr char kGgufMagic[] = {'G', 'G', 'U', 'F'};
inline constexpr char kGgufAlignmentKey[] = "general.alignment";
inline constexpr uint64_t kGgufMaxDims = 4;

// Ids of metadata types.
enum class GgufValueType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

// The metadata's general.alignment, 32 when absent. Throws Error unless it is a power of two up to
// 1 GiB.
inline uint64_t gguf_alignment(const Metadata& metadata) {
  const int64_t alignment = metadata.get_int(kGgufAlignmentKey).value_or(32);
  if (alignment <= 0 || alignment > (int64_t{1} << 30) ||
      !std::has_single_bit(static_cast<uint64_t>(alignment))) {
    fail("{}: expected a power of two up to 2^30, found {}", kGgufAlignmentKey, alignment);
  }
  return static_cast<uint64_t>(alignment);
}

}  // namespace wisp::formats
