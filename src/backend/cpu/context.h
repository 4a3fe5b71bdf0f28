// What the CPU ops work on: weights where they lie, KV pages, the values of a plan, threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/threads.h"
#include "formats/dtype.h"
#include "plan/plan.h"

namespace wisp::backend::cpu {

// Zeroed bytes at a 64-byte boundary. The system gives their memory as it is first touched.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(uint64_t bytes);  // throws Error when there is not that much

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  // Makes room for at least `bytes`; what was there is lost when it grows.
  void reserve(uint64_t bytes) {
    if (bytes > size_) *this = Buffer(bytes);
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

// A weight: rows of row_bytes each, at any address unless the type is F32, whose rows lie at
// multiples of 4.
struct WeightView {
  struct Part {
    uint32_t end_row = 0;
    const std::byte* data = nullptr;  // of its first row
  };

  formats::DType dtype = formats::DType::F32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  uint64_t row_bytes = 0;
  std::vector<Part> parts;

  // The part that has row r.
  size_t part_of(uint32_t r) const {
    return static_cast<size_t>(
        std::upper_bound(parts.begin(), parts.end(), r,
                         [](uint32_t row, const Part& part) { return row < part.end_row; }) -
        parts.begin());
  }
  const std::byte* row(uint32_t r) const {
    const size_t part = part_of(r);
    const uint32_t begin = part == 0 ? 0 : parts[part - 1].end_row;
    return parts[part].data + (r - begin) * row_bytes;
  }
  // Whether rows [first, first + count) lie one after another.
  bool together(uint32_t first, uint32_t count) const {
    return part_of(first) == part_of(first + count - 1);
  }
  // Rows [first, first + count) as a matrix.
  WeightView slice(uint32_t first, uint32_t count) const;
  // Row r of an F32 weight.
  const float* floats(uint32_t r = 0) const { return reinterpret_cast<const float*>(row(r)); }
};

// Pages of one layer, [page, kv head, token, head_dim] and [page, kv head, token, value_dim], f16
// bits or f32. Where keys hold the values there are those of the keys alone.
struct KvPages {
  plan::KvLayer shape;
  formats::DType dtype = formats::DType::F16;
  Buffer keys;
  Buffer values;

  uint64_t element_bytes() const { return dtype == formats::DType::F16 ? 2 : 4; }
  // The first of the page's tokens for one head.
  std::byte* key_page(uint32_t page, uint32_t head) const {
    return at(keys, page, head, shape.head_dim);
  }
  std::byte* value_page(uint32_t page, uint32_t head) const {
    return at(shape.values_in_keys ? keys : values, page, head, value_stride());
  }
  // Elements from one token's values to the next one's.
  uint32_t value_stride() const { return shape.values_in_keys ? shape.head_dim : shape.value_dim; }

 private:
  std::byte* at(const Buffer& buffer, uint32_t page, uint32_t head, uint32_t width) const {
    return buffer.data() + (uint64_t{page} * shape.num_kv_heads + head) * plan::kPageTokens *
                               width * element_bytes();
  }
};

// Rows of one state, f32 [rows, width].
struct StateRows {
  uint32_t width = 0;
  Buffer rows;

  float* row(uint32_t r) const {
    return reinterpret_cast<float*>(rows.data()) + uint64_t{r} * width;
  }
};

struct ColumnView {
  int32_t token = 0;
  uint32_t position = 0;
  uint32_t slot = 0;
  const uint32_t* pages = nullptr;  // the slot's row of the block table
};

// Columns of one slot, one after another.
struct Run {
  size_t first = 0;
  size_t count = 0;
};

std::vector<Run> runs_of(std::span<const ColumnView> columns);

// Memory that ops need while they run, kept between steps.
struct Scratch {
  Buffer shared;                // made by the calling thread, read by all
  Buffer partials;              // the same, for a second use within one op
  std::vector<Buffer> workers;  // one a thread
};

// What one run of an op sees. Ops after SelectLogits see the rows of one pass.
struct OpContext {
  ThreadPool& pool;
  Scratch& scratch;
  const plan::Plan& plan;
  plan::KernelClass kernel_class;
  std::span<std::byte* const> values;  // by value index
  std::span<const WeightView> weights;
  std::span<const KvPages> kv;
  std::span<const StateRows> states;
  std::span<const ColumnView> columns;
  std::span<const uint32_t> logit_columns;

  size_t rows(plan::ValueId id) const {
    return plan[id].rows == plan::Rows::columns ? columns.size() : logit_columns.size();
  }
  uint32_t width(plan::ValueId id) const { return plan[id].width; }
  std::byte* bytes(plan::ValueId id) const { return values[plan::index(id)]; }
  float* floats(plan::ValueId id) const { return reinterpret_cast<float*>(bytes(id)); }
  const WeightView& operator[](plan::WeightId id) const { return weights[plan::index(id)]; }
  // The state of a run's slot, and whether it holds what its first column goes on from.
  float* state(plan::StateId id, const Run& run) const {
    return states[plan::index(id)].row(columns[run.first].slot);
  }
  bool continues(const Run& run) const { return columns[run.first].position > 0; }
  // The row of a vector weight, or nullptr.
  const float* vector(const std::optional<plan::WeightId>& id) const {
    return id ? (*this)[*id].floats() : nullptr;
  }
};

// Calls body(begin, end, worker) over rows that cost about `work` element operations each: by the
// calling thread alone where that is too little to share.
template <typename Body>
void for_rows(const OpContext& context, size_t rows, size_t work, const Body& body) {
  constexpr size_t kWorthSharing = 16384;
  if (rows * work < 2 * kWorthSharing) {
    body(size_t{0}, rows, size_t{0});
    return;
  }
  const size_t pieces = context.pool.size() * 4;
  const size_t least = (kWorthSharing + work - 1) / work;
  const size_t grain = std::max(least, (rows + pieces - 1) / pieces);
  context.pool.parallel_for(rows, grain, std::ref(body));
}

// Calls body(run, item) for each of `items` of each run; one costs `work` operations a column.
template <typename Body>
void for_runs(const OpContext& context, size_t items, size_t work, const Body& body) {
  const std::vector<Run> runs = runs_of(context.columns);
  const size_t of_run = work * context.columns.size() / runs.size();
  for_rows(context, runs.size() * items, of_run, [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i) body(runs[i / items], i % items);
  });
}

}  // namespace wisp::backend::cpu
