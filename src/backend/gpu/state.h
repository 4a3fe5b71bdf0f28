// What plans of one model share on the device: weights, KV pages, block table, last tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/gpu/weights.h"
#include "gpu/buffer.h"
#include "gpu/device.h"

namespace wisp::backend::webgpu {

struct KvBuffers {
  gpu::Buffer keys;    // [page][kv head][token][kv_stride(head_dim)], f16 or f32
  gpu::Buffer values;  // the same with value_dim; none where the keys hold the values
};

struct State {
  plan::Resources resources;
  uint32_t max_slots = 0;
  uint32_t page_stride = 0;  // max_pages_per_slot
  uint32_t num_pages = 0;
  std::vector<DeviceWeight> weights;
  std::vector<KvBuffers> kv;        // by KV layer
  std::vector<gpu::Buffer> states;  // f32 [num_states][state_stride(width)]
  uint32_t num_states = 0;
  gpu::Buffer block_table;  // u32 [max_slots][page_stride]
  gpu::Buffer last_tokens;  // u32 [max_slots]
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  uint64_t state_bytes = 0;
};

// Uploads the weights and makes the KV cache. `budget_bytes`: most that both may take, 0: no limit
// but the device's. Throws Error that says what is needed and what there is.
State load_state(gpu::Device& device, const LoadOptions& options, uint64_t budget_bytes);

// Writes pages into the block table. Throws Error on a slot, index or page that does not exist.
void update_table(gpu::Device& device, const State& state, const TableUpdate& update);

}  // namespace wisp::backend::webgpu
