#include "plan/memory.h"

#include <algorithm>
#include <limits>

namespace wisp::plan {
namespace {

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

struct Lifetime {
  uint32_t first = kNever;  // op that writes it first
  uint32_t last = 0;        // op that touches it last
};

std::vector<Lifetime> lifetimes(const Plan& plan, std::span<const ValueId> kept) {
  std::vector<Lifetime> result(plan.values.size());
  const auto end = static_cast<uint32_t>(plan.ops.size());
  for (const ValueId id : plan.inputs) result[index(id)] = {0, end};
  for (uint32_t i = 0; i < end; ++i) {
    const auto touch = [&](ValueId id) {
      Lifetime& life = result[index(id)];
      life.first = std::min(life.first, i);
      life.last = std::max(life.last, i);
    };
    for (const ValueId id : outputs(plan.ops[i].body)) touch(id);
    for (const ValueId id : inputs(plan.ops[i].body)) touch(id);
    // Ops after select_logits may run several times, so what it reads must outlive them all.
    if (const auto* select = std::get_if<SelectLogits>(&plan.ops[i].body)) {
      result[index(select->x)].last = end;
    }
  }
  for (const ValueId id : kept) result[index(id)].last = end;
  return result;
}

}  // namespace

MemoryPlan plan_memory(const Plan& plan, std::span<const ValueId> kept) {
  MemoryPlan memory;
  memory.buffer_of_value.assign(plan.values.size(), kNever);
  const std::vector<Lifetime> lives = lifetimes(plan, kept);
  std::vector<uint32_t> busy_until;  // by buffer: the last op of its value

  std::vector<uint32_t> order;  // values by the op that writes them first
  for (uint32_t v = 0; v < plan.values.size(); ++v) {
    if (lives[v].first != kNever) order.push_back(v);
  }
  std::ranges::stable_sort(order, {}, [&](uint32_t v) { return lives[v].first; });

  for (const uint32_t v : order) {
    const Value& value = plan.values[v];
    const uint64_t rows = value.rows == Rows::columns ? plan.max_columns : plan.max_logits;
    const uint64_t bytes = row_bytes(value) * rows;
    // Of the free buffers the one whose size is nearest: growing or wasting as little as can be.
    uint32_t best = kNever;
    uint64_t best_cost = std::numeric_limits<uint64_t>::max();
    for (uint32_t b = 0; b < busy_until.size(); ++b) {
      if (busy_until[b] >= lives[v].first) continue;
      const uint64_t size = memory.buffer_bytes[b];
      const uint64_t cost = size > bytes ? size - bytes : bytes - size;
      if (cost < best_cost) {
        best = b;
        best_cost = cost;
      }
    }
    if (best == kNever) {
      best = static_cast<uint32_t>(busy_until.size());
      busy_until.push_back(0);
      memory.buffer_bytes.push_back(0);
    }
    busy_until[best] = lives[v].last;
    memory.buffer_bytes[best] = std::max(memory.buffer_bytes[best], bytes);
    memory.buffer_of_value[v] = best;
  }
  return memory;
}

}  // namespace wisp::plan
