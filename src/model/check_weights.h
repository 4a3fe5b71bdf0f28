// What --check-tensors looks for.
#pragma once

#include <cstdint>
#include <functional>

#include "base/threads.h"
#include "model/weights.h"

namespace wisp::model {

// Decodes every weight. Throws Error naming the first one that holds a NaN or an infinity, with its
// row and block, and how many more weights do. Indices of grids and codebooks need no look:
// whatever their bits are, they are within their tables. `progress` may be empty.
void check_values(const Weights& weights, ThreadPool& pool,
                  const std::function<void(uint64_t done_bytes, uint64_t total_bytes)>& progress);

}  // namespace wisp::model
