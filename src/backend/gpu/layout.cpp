#include "backend/gpu/layout.h"

#include <cstring>

#include "backend/gpu/codec_tables.h"
#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::webgpu {
namespace {

using formats::DType;

bool is_plain(const WeightLayout& layout) { return layout.block_elements == 1; }

uint64_t padded_row(const WeightLayout& layout, uint64_t cols) {
  return round_up(cols * layout.block_bytes, 16);
}

// Bytes of a block in plane 0.
uint64_t data_unit(const WeightLayout& layout) {
  return round_up(layout.data[0].bytes + layout.data[1].bytes, 16);
}

// Bytes of side_blocks blocks in plane 1.
uint64_t side_unit(const WeightLayout& layout) {
  const uint64_t block = layout.side[0].bytes + layout.side[1].bytes;
  return block <= 2 ? block : round_up(layout.side_blocks * block, 4);
}

// Rows in the form of plan.h (to_plain) or of the device.
std::vector<std::byte> convert(const plan::Value& value, std::span<const std::byte> from,
                               bool to_plain) {
  const uint64_t plain = plan::row_bytes(value);
  const uint64_t padded = uint64_t{value_stride(value)} * 4;
  const uint64_t from_row = to_plain ? padded : plain;
  const uint64_t to_row = to_plain ? plain : padded;
  const uint64_t rows = from.size() / from_row;
  const size_t halves = plan::is_q8(value.type) ? value.width / 16 : 0;
  std::vector<std::byte> out(rows * to_row);
  for (uint64_t r = 0; r < rows; ++r) {
    const std::byte* source = from.data() + r * from_row;
    std::byte* target = out.data() + r * to_row;
    std::memcpy(target, source, plain);
    for (size_t half = 0; half < halves; ++half) {
      const size_t in_plain = half * 16;
      const size_t on_device = half / 2 * 16 + half % 2 * (value.width / 2);
      std::memcpy(target + (to_plain ? in_plain : on_device),
                  source + (to_plain ? on_device : in_plain), 16);
    }
  }
  return out;
}

}  // namespace

std::vector<std::byte> to_device(const plan::Value& value, std::span<const std::byte> from) {
  return convert(value, from, false);
}

std::vector<std::byte> from_device(const plan::Value& value, std::span<const std::byte> from) {
  return convert(value, from, true);
}

uint32_t value_stride(const plan::Value& value) {
  return static_cast<uint32_t>(round_up(plan::row_bytes(value) / 4, 4));
}

uint32_t kv_stride(uint32_t dim) { return static_cast<uint32_t>(round_up(dim, 8)); }

uint32_t state_stride(uint32_t width) { return static_cast<uint32_t>(round_up(width, 4)); }

// docs/formats.md draws the blocks.
WeightLayout weight_layout(DType dtype) {
  const formats::DTypeInfo& info = formats::dtype_info(dtype);
  WeightLayout layout{.block_elements = info.block_elements,
                      .block_bytes = info.block_bytes,
                      .table = codec_table(dtype)};
  const auto as = [&](std::array<BlockField, 2> data, std::array<BlockField, 2> side = {}) {
    layout.data = data;
    layout.side = side;
    return layout;
  };
  switch (dtype) {
    case DType::F32:
      return as({{{0, 4}}});
    case DType::F16:
    case DType::BF16:
      return as({{{0, 2}}});
    case DType::Q8_0:
      return as({{{2, 32}}}, {{{0, 2}}});
    case DType::Q4_0:
    case DType::IQ4_NL:
      return as({{{2, 16}}}, {{{0, 2}}});
    case DType::Q4_1:
      return as({{{4, 16}}}, {{{0, 4}}});
    case DType::Q5_0:
      layout.side_blocks = 2;
      return as({{{6, 16}}}, {{{2, 4}, {0, 2}}});
    case DType::Q5_1:
      return as({{{8, 16}}}, {{{0, 8}}});
    case DType::MXFP4:
      return as({{{1, 16}}}, {{{0, 1}}});
    case DType::NVFP4:
      return as({{{4, 32}}}, {{{0, 4}}});
    case DType::Q2_K:
      return as({{{0, 80}}}, {{{80, 4}}});
    case DType::Q3_K:
    case DType::Q4_K:
    case DType::Q5_K:
      return as({{{0, static_cast<uint8_t>(info.block_bytes)}}});
    case DType::Q6_K:
      return as({{{0, 208}}}, {{{208, 2}}});
    case DType::IQ4_XS:
      return as({{{8, 128}}}, {{{0, 8}}});
    case DType::IQ3_S:
      return as({{{2, 108}, {0, 2}}});
    case DType::IQ3_XXS:
      return as({{{2, 96}}}, {{{0, 2}}});
    case DType::IQ2_S:
      return as({{{2, 64}}}, {{{66, 16}, {0, 2}}});
    case DType::IQ2_XS:
      return as({{{2, 64}}}, {{{66, 8}, {0, 2}}});
    case DType::IQ2_XXS:
      return as({{{2, 64}}}, {{{0, 2}}});
    case DType::IQ1_S:
      return as({{{2, 48}}}, {{{0, 2}}});
    case DType::IQ1_M:
      return as({{{0, 48}}}, {{{48, 8}}});
    case DType::TQ1_0:
      return as({{{0, 48}}}, {{{48, 6}}});
    case DType::TQ2_0:
      return as({{{0, 64}}}, {{{64, 2}}});
    case DType::I4_32:
    case DType::I4_64:
    case DType::I4_128:
    case DType::I8_32:
    case DType::I8_128:
    case DType::F8_32:
    case DType::F8_128:
      return as({{{4, static_cast<uint8_t>(info.block_bytes - 4)}}}, {{{0, 4}}});
    default:
      fail("weights of type {} are not supported by the webgpu backend", info.name);
  }
}

uint64_t data_bytes(const WeightLayout& layout, uint64_t rows, uint64_t cols) {
  if (is_plain(layout)) return rows * padded_row(layout, cols);
  return rows * (cols / layout.block_elements) * data_unit(layout);
}

uint64_t side_bytes(const WeightLayout& layout, uint64_t rows, uint64_t cols) {
  return ceil_div(rows * (cols / layout.block_elements), layout.side_blocks) * side_unit(layout);
}

uint32_t row_vectors(const WeightLayout& layout, uint32_t cols) {
  return static_cast<uint32_t>(data_bytes(layout, 1, cols) / 16);
}

void split_planes(const WeightLayout& layout, std::span<const std::byte> stored, uint64_t rows,
                  uint64_t cols, std::span<std::byte> data, std::span<std::byte> side) {
  ensure(data.size() == data_bytes(layout, rows, cols), "split_planes: data size");
  ensure(side.size() == side_bytes(layout, rows, cols), "split_planes: side size");
  if (is_plain(layout)) {
    const uint64_t row = cols * layout.block_bytes;
    const uint64_t padded = padded_row(layout, cols);
    ensure(stored.size() == rows * row, "split_planes: stored size");
    for (uint64_t r = 0; r < rows; ++r) {
      std::memcpy(data.data() + r * padded, stored.data() + r * row, row);
      std::memset(data.data() + r * padded + row, 0, padded - row);
    }
    return;
  }
  const uint64_t blocks = rows * (cols / layout.block_elements);
  ensure(stored.size() == blocks * layout.block_bytes, "split_planes: stored size");
  for (uint64_t b = 0; b < blocks; ++b) {
    const std::byte* from = stored.data() + b * layout.block_bytes;
    std::byte* to = data.data() + b * data_unit(layout);
    for (const BlockField& field : layout.data) {
      std::memcpy(to, from + field.offset, field.bytes);
      to += field.bytes;
    }
    to = side.data() + b / layout.side_blocks * side_unit(layout);
    for (const BlockField& field : layout.side) {
      std::memcpy(to + b % layout.side_blocks * field.bytes, from + field.offset, field.bytes);
      to += size_t{layout.side_blocks} * field.bytes;
    }
  }
}

}  // namespace wisp::backend::webgpu
