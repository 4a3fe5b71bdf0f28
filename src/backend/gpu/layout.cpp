#include "backend/gpu/layout.h"

#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::webgpu {
namespace {

using formats::DType;

bool is_plain(const WeightLayout& layout) { return layout.block_elements == 1; }

uint64_t padded_row(const WeightLayout& layout, uint64_t cols) {
  return round_up(cols * layout.data_bytes, 16);
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

WeightLayout weight_layout(DType dtype) {
  const formats::DTypeInfo& info = formats::dtype_info(dtype);
  WeightLayout layout{.block_elements = info.block_elements,
                      .block_bytes = info.block_bytes,
                      .data_bytes = info.block_bytes};
  switch (dtype) {
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::Q4_K:  // 144 bytes: nine vectors as stored
      return layout;
    case DType::Q8_0:  // d, 32 quants
    case DType::Q4_0:  // d, 16 bytes of quants
      layout.data_offset = layout.scales_bytes = 2;
      layout.data_bytes = info.block_bytes - 2;
      return layout;
    case DType::Q4_1:  // d, m, 16 bytes of quants
      layout.data_offset = layout.scales_bytes = 4;
      layout.data_bytes = info.block_bytes - 4;
      return layout;
    case DType::Q6_K:  // quants, scales, d
      layout.data_bytes = layout.scales_offset = info.block_bytes - 2;
      layout.scales_bytes = 2;
      return layout;
    default:
      fail("weights of type {} are not supported by the webgpu backend", info.name);
  }
}

uint64_t data_bytes(const WeightLayout& layout, uint64_t rows, uint64_t cols) {
  if (is_plain(layout)) return rows * padded_row(layout, cols);
  return rows * (cols / layout.block_elements) * layout.data_bytes;
}

uint64_t scales_bytes(const WeightLayout& layout, uint64_t rows, uint64_t cols) {
  return rows * (cols / layout.block_elements) * layout.scales_bytes;
}

uint32_t row_vectors(const WeightLayout& layout, uint32_t cols) {
  return static_cast<uint32_t>(data_bytes(layout, 1, cols) / 16);
}

void split_planes(const WeightLayout& layout, std::span<const std::byte> stored, uint64_t rows,
                  uint64_t cols, std::span<std::byte> data, std::span<std::byte> scales) {
  ensure(data.size() == data_bytes(layout, rows, cols), "split_planes: data size");
  ensure(scales.size() == scales_bytes(layout, rows, cols), "split_planes: scales size");
  if (is_plain(layout)) {
    const uint64_t row = cols * layout.data_bytes;
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
  const std::byte* from = stored.data();
  for (uint64_t b = 0; b < blocks; ++b, from += layout.block_bytes) {
    std::memcpy(data.data() + b * layout.data_bytes, from + layout.data_offset, layout.data_bytes);
    if (layout.scales_bytes > 0) {
      std::memcpy(scales.data() + b * layout.scales_bytes, from + layout.scales_offset,
                  layout.scales_bytes);
    }
  }
}

}  // namespace wisp::backend::webgpu
