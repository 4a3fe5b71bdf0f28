#include "formats/quantize.h"

#include <cmath>

#include "base/error.h"
#include "formats/quantize_block.h"

namespace wisp::formats {

namespace {

struct Encoder {
  DType dtype;
  EncodeBlockFn encode_block;
};

constexpr Encoder kEncoders[] = {
    {DType::Q8_0, encode_block_q8_0},     {DType::Q4_0, encode_block_q4_0},
    {DType::Q4_1, encode_block_q4_1},     {DType::Q5_0, encode_block_q5_0},
    {DType::Q5_1, encode_block_q5_1},     {DType::Q4_K, encode_block_q4_k},
    {DType::Q5_K, encode_block_q5_k},     {DType::Q6_K, encode_block_q6_k},
    {DType::IQ4_NL, encode_block_iq4_nl}, {DType::IQ4_XS, encode_block_iq4_xs},
};

EncodeBlockFn find_encoder(DType dtype) {
  for (const Encoder& encoder : kEncoders) {
    if (encoder.dtype == dtype) return encoder.encode_block;
  }
  return nullptr;
}

bool is_plain_float(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

// What rounds to an infinity in the type.
float limit_of(DType dtype) {
  return dtype == DType::F16 ? 65520.0f : dtype == DType::BF16 ? 0x1.ffp127f : INFINITY;
}

void check_values(DType dtype, std::span<const float> row) {
  const float limit = limit_of(dtype);
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::fabs(row[i]) < limit) continue;
    if (std::isfinite(row[i])) {
      fail("column {}: {} is too large for {}", i, row[i], dtype_name(dtype));
    }
    fail("column {}: {} is not a finite number", i, row[i]);
  }
}

}  // namespace

bool can_encode(DType dtype) { return is_plain_float(dtype) || find_encoder(dtype) != nullptr; }

void encode_row(DType dtype, std::span<const float> row, std::span<const float> importance,
                std::byte* blocks) {
  const DTypeInfo& info = dtype_info(dtype);
  ensure(can_encode(dtype) && row.size() % info.block_elements == 0, "encode_row: type and blocks");
  ensure(importance.empty() || importance.size() == row.size(), "encode_row: a weight a column");
  check_values(dtype, row);
  if (is_plain_float(dtype)) {
    info.quantize(row.data(), blocks, row.size());
    return;
  }
  const EncodeBlockFn encode_block = find_encoder(dtype);
  for (size_t i = 0; i < row.size(); i += info.block_elements, blocks += info.block_bytes) {
    encode_block(row.data() + i, importance.empty() ? nullptr : importance.data() + i, blocks);
  }
}

}  // namespace wisp::formats
