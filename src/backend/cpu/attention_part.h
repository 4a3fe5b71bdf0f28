// A piece of attention: some columns of one slot, one KV head, one range of positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/context.h"
#include "plan/op.h"

namespace wisp::backend::cpu {

// Ranges of absolute positions, whose softmax sums are merged in order.
inline constexpr uint32_t kRangeKeys = 256;

// Columns [first, first + count) of the step; their query heads of one KV head are the rows of the
// piece, head by head within a column.
struct AttentionPart {
  const plan::Attention& op;
  const KvPages& kv;
  const ColumnView* columns = nullptr;
  size_t count = 0;
  const float* q = nullptr;  // of the first column and head; columns lie q_stride apart
  size_t q_stride = 0;
  uint32_t kv_head = 0;
  size_t group = 1;              // query heads of the KV head
  const float* sinks = nullptr;  // of all heads, or none

  size_t rows() const { return count * group; }
  uint32_t last_position() const { return columns[count - 1].position; }
  // The positions that a column sees: [first_key, position].
  uint32_t first_key(size_t column) const {
    const uint32_t position = columns[column].position;
    return op.window > 0 && position >= op.window ? position + 1 - op.window : 0;
  }
};

// What a softmax over a part of the keys leaves, for each row: the largest score, the sum of the
// exponentials and the weighted sum of the values, [rows][2 + value_dim].
inline size_t partial_floats(const AttentionPart& part) {
  return part.rows() * (2 + part.kv.shape.value_dim);
}

}  // namespace wisp::backend::cpu
