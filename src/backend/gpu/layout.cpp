#include "backend/gpu/layout.h"

#include <algorithm>
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

// Copies the quants of a q8 row; the device's row is that with the halves apart.
void copy_quants(std::span<std::byte> plain, std::span<std::byte> device, uint32_t width,
                 bool to_plain) {
  for (uint32_t half = 0; half < width / 16; ++half) {
    std::byte* a = plain.data() + size_t{half} * 16;
    std::byte* b = device.data() + size_t{half / 2} * 16 + size_t{half % 2} * (width / 2);
    std::memcpy(to_plain ? a : b, to_plain ? b : a, 16);
  }
}

}  // namespace

std::vector<std::byte> to_device(const plan::Value& value, std::span<const std::byte> from) {
  const uint64_t plain = plan::row_bytes(value);
  const uint64_t padded = uint64_t{value_stride(value)} * 4;
  const uint64_t rows = from.size() / plain;
  std::vector<std::byte> out(rows * padded);
  for (uint64_t r = 0; r < rows; ++r) {
    std::vector<std::byte> row(from.begin() + static_cast<ptrdiff_t>(r * plain),
                               from.begin() + static_cast<ptrdiff_t>((r + 1) * plain));
    const std::span<std::byte> to(out.data() + r * padded, padded);
    std::ranges::copy(row, to.begin());
    if (plan::is_q8(value.type)) copy_quants(row, to, value.width, false);
  }
  return out;
}

std::vector<std::byte> from_device(const plan::Value& value, std::span<const std::byte> from) {
  const uint64_t plain = plan::row_bytes(value);
  const uint64_t padded = uint64_t{value_stride(value)} * 4;
  const uint64_t rows = from.size() / padded;
  std::vector<std::byte> out(rows * plain);
  for (uint64_t r = 0; r < rows; ++r) {
    std::vector<std::byte> row(from.begin() + static_cast<ptrdiff_t>(r * padded),
                               from.begin() + static_cast<ptrdiff_t>((r + 1) * padded));
    const std::span<std::byte> to(out.data() + r * plain, plain);
    std::copy_n(row.begin(), plain, to.begin());
    if (plan::is_q8(value.type)) copy_quants(to, row, value.width, true);
  }
  return out;
}

uint32_t value_stride(const plan::Value& value) {
  return static_cast<uint32_t>(round_up(plan::row_bytes(value) / 4, 4));
}

uint32_t kv_stride(uint32_t dim) { return static_cast<uint32_t>(round_up(dim, 8)); }

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
