#include "backend/gpu/weights.h"

#include <algorithm>
#include <cstring>

#include "backend/gpu/layout.h"
#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::webgpu {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

// The bytes of a weight as one stream over its parts.
class ByteStream {
 public:
  explicit ByteStream(const WeightParts& parts) : parts_(parts) {}

  // The next `size` bytes: where they lie, or gathered in `scratch` when they cross parts.
  std::span<const std::byte> take(uint64_t size, std::vector<std::byte>& scratch) {
    skip_empty();
    if (part_ < parts_.size() && parts_[part_].size() - at_ >= size) {
      at_ += size;
      return parts_[part_].subspan(at_ - size, size);
    }
    scratch.resize(size);
    for (uint64_t done = 0; done < size;) {
      skip_empty();
      ensure(part_ < parts_.size(), "a weight's parts hold its bytes");
      const uint64_t step = std::min<uint64_t>(parts_[part_].size() - at_, size - done);
      std::memcpy(scratch.data() + done, parts_[part_].data() + at_, step);
      at_ += step;
      done += step;
    }
    return scratch;
  }

 private:
  void skip_empty() {
    while (part_ < parts_.size() && at_ == parts_[part_].size()) {
      ++part_;
      at_ = 0;
    }
  }

  const WeightParts& parts_;
  size_t part_ = 0;
  size_t at_ = 0;
};

uint64_t total_size(const WeightParts& parts) {
  uint64_t size = 0;
  for (const auto& part : parts) size += part.size();
  return size;
}

class Uploader {
 public:
  Uploader(gpu::Device& device, const LoadOptions& options)
      : device_(device), options_(options), total_(device_bytes(options.resources.weights)) {}

  DeviceWeight upload(const plan::Weight& weight, const WeightParts& parts) {
    const WeightLayout layout = weight_layout(weight.dtype);
    const uint64_t row_bytes = formats::row_bytes(weight.dtype, weight.cols);
    const uint64_t stored = checked_mul(row_bytes, weight.rows, weight.name);
    if (total_size(parts) != stored) {
      fail("expected {} bytes for {}[{}, {}], found {}", stored, formats::dtype_name(weight.dtype),
           weight.rows, weight.cols, total_size(parts));
    }
    const uint64_t limit =
        std::min(device_.capabilities().max_binding_size, device_.capabilities().max_buffer_size);
    const uint64_t row = std::max(data_bytes(layout, 1, weight.cols), uint64_t{1});
    const uint64_t rows_per_part = std::min<uint64_t>(limit / row, weight.rows);
    if (rows_per_part == 0) fail("a row needs {} bytes; the adapter binds {}", row, limit);
    ByteStream stream(parts);
    DeviceWeight out;
    for (uint32_t first = 0; first < weight.rows;) {
      WeightPart& part = out.emplace_back();
      part.first_row = first;
      part.rows = static_cast<uint32_t>(std::min<uint64_t>(rows_per_part, weight.rows - first));
      part.data = buffer(data_bytes(layout, part.rows, weight.cols), weight.name);
      const uint64_t side = side_bytes(layout, part.rows, weight.cols);
      if (side + layout.table.size() > 0) {
        part.side = buffer(layout.table.size() + side, weight.name);
      }
      fill(part, layout, row_bytes, weight.cols, stream);
      first += part.rows;
    }
    return out;
  }

 private:
  gpu::Buffer buffer(uint64_t size, const std::string& name) {
    try {
      return gpu::Buffer(device_, size, gpu::BufferUse::storage, name);
    } catch (const Error& error) {
      fail("{}; the weights need {} MiB of device memory, of which {} MiB were taken", error.what(),
           total_ >> 20, done_ >> 20);
    }
  }

  void fill(const WeightPart& part, const WeightLayout& layout, uint64_t row_bytes, uint32_t cols,
            ByteStream& stream) {
    const uint64_t chunk =
        std::max<uint64_t>(1, kChunkBytes / (kPieceRows * std::max<uint64_t>(1, row_bytes))) *
        kPieceRows;
    const uint64_t table = layout.table.size();
    if (table > 0) device_.write(part.side, 0, layout.table);
    done_ += table;
    for (uint64_t row = 0; row < part.rows; row += chunk) {
      const uint64_t rows = std::min<uint64_t>(chunk, part.rows - row);
      const auto stored = stream.take(rows * row_bytes, scratch_);
      data_.resize(data_bytes(layout, rows, cols));
      side_.resize(side_bytes(layout, rows, cols));
      split_planes(layout, stored, rows, cols, data_, side_);
      device_.write(part.data, data_bytes(layout, row, cols), data_);
      if (!side_.empty()) {
        device_.write(part.side, table + side_bytes(layout, row, cols), side_);
      }
      done_ += data_.size() + side_.size();
      if (options_.progress) options_.progress(done_, total_);
    }
  }

  gpu::Device& device_;
  const LoadOptions& options_;
  const uint64_t total_;
  uint64_t done_ = 0;
  std::vector<std::byte> scratch_, data_, side_;
};

}  // namespace

uint64_t device_bytes(const std::vector<plan::Weight>& weights) {
  uint64_t total = 0;
  for (const plan::Weight& weight : weights) {
    const WeightLayout layout = weight_layout(weight.dtype);
    total += data_bytes(layout, weight.rows, weight.cols) +
             side_bytes(layout, weight.rows, weight.cols) + layout.table.size();
  }
  return total;
}

std::vector<DeviceWeight> upload_weights(gpu::Device& device, const LoadOptions& options) {
  const std::vector<plan::Weight>& list = options.resources.weights;
  ensure(options.weights.size() == list.size(), "every weight has its bytes");
  Uploader uploader(device, options);
  std::vector<DeviceWeight> out;
  for (size_t i = 0; i < list.size(); ++i) {
    out.push_back(with_context(fmt::format("weight '{}'", list[i].name),
                               [&] { return uploader.upload(list[i], options.weights[i]); }));
  }
  return out;
}

}  // namespace wisp::backend::webgpu
