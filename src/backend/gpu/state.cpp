#include "backend/gpu/state.h"

#include <algorithm>

#include "backend/gpu/layout.h"
#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::webgpu {
namespace {

uint64_t page_bytes(const plan::KvLayer& layer, uint32_t dim, formats::DType dtype) {
  const uint64_t element = dtype == formats::DType::F16 ? 2 : 4;
  return uint64_t{layer.num_kv_heads} * plan::kPageTokens * kv_stride(dim) * element;
}

uint64_t total_kv_bytes(const LoadOptions& options) {
  uint64_t total = 0;
  const auto add = [&](const plan::KvLayer& layer, uint32_t dim) {
    const uint64_t page = page_bytes(layer, dim, options.resources.kv_dtype);
    total = checked_add(total, checked_mul(page, options.num_pages, "KV cache"), "KV cache");
  };
  for (const plan::KvLayer& layer : options.resources.kv_layers) {
    add(layer, layer.head_dim);
    if (!layer.values_in_keys) add(layer, layer.value_dim);
  }
  return total;
}

class KvMaker {
 public:
  KvMaker(gpu::Device& device, const LoadOptions& options, uint64_t total)
      : device_(device), options_(options), total_(total) {}

  gpu::Buffer make(const plan::KvLayer& layer, uint32_t dim, const std::string& label) {
    const uint64_t page = page_bytes(layer, dim, options_.resources.kv_dtype);
    const uint64_t size = page * options_.num_pages;
    const uint64_t limit =
        std::min(device_.capabilities().max_binding_size, device_.capabilities().max_buffer_size);
    const uint64_t fit = limit / page;
    if (fit < options_.num_pages) {
      fail(
          "{}: {} pages need {} bytes; the adapter binds {} ({} pages, {} positions over all "
          "sequences)",
          label, options_.num_pages, size, limit, fit, fit * plan::kPageTokens);
    }
    try {
      return gpu::Buffer(device_, size, gpu::BufferUse::storage, label);
    } catch (const Error& error) {
      fail("{}; the KV cache of {} pages needs {} MiB of device memory in all", error.what(),
           options_.num_pages, total_ >> 20);
    }
  }

 private:
  gpu::Device& device_;
  const LoadOptions& options_;
  uint64_t total_;
};

// Makes the states. Throws Error where one does not fit a binding.
void make_states(gpu::Device& device, State& state) {
  const uint64_t limit =
      std::min(device.capabilities().max_binding_size, device.capabilities().max_buffer_size);
  for (size_t i = 0; i < state.resources.states.size(); ++i) {
    const uint64_t row = uint64_t{state_stride(state.resources.states[i].width)} * 4;
    const uint64_t size = row * state.num_states;
    if (size > limit) {
      fail("state {} of {} sequences needs {} bytes; the adapter binds {} ({} sequences)", i,
           state.num_states, size, limit, limit / row);
    }
    state.states.emplace_back(device, size, gpu::BufferUse::storage, fmt::format("state {}", i));
  }
}

uint64_t total_state_bytes(const plan::Resources& resources, uint32_t num_states) {
  uint64_t total = 0;
  for (const plan::StateLayer& layer : resources.states) {
    const uint64_t row = uint64_t{state_stride(layer.width)} * 4;
    total = checked_add(total, checked_mul(row, num_states, "states"), "states");
  }
  return total;
}

}  // namespace

State load_state(gpu::Device& device, const LoadOptions& options, uint64_t budget_bytes) {
  if (options.max_slots == 0 || options.num_pages == 0 || options.max_pages_per_slot == 0) {
    fail("{} slots, {} pages, {} pages a slot: expected at least one of each", options.max_slots,
         options.num_pages, options.max_pages_per_slot);
  }
  State state;
  state.resources = options.resources;
  state.max_slots = options.max_slots;
  state.page_stride = options.max_pages_per_slot;
  state.num_pages = options.num_pages;
  state.weight_bytes = device_bytes(options.resources.weights);
  state.kv_bytes = total_kv_bytes(options);
  state.num_states = std::max(options.num_states, options.max_slots);
  state.state_bytes = total_state_bytes(options.resources, state.num_states);
  const uint64_t cache = checked_add(state.kv_bytes, state.state_bytes, "KV cache and states");
  const uint64_t needed = checked_add(state.weight_bytes, cache, "weights and KV cache");
  if (budget_bytes > 0 && needed > budget_bytes) {
    fail("weights of {} MiB and a KV cache of {} MiB need {} MiB; there are {} MiB",
         state.weight_bytes >> 20, cache >> 20, needed >> 20, budget_bytes >> 20);
  }
  state.weights = upload_weights(device, options);
  KvMaker maker(device, options, state.kv_bytes);
  for (size_t i = 0; i < options.resources.kv_layers.size(); ++i) {
    const plan::KvLayer& layer = options.resources.kv_layers[i];
    KvBuffers& kv = state.kv.emplace_back();
    kv.keys = maker.make(layer, layer.head_dim, fmt::format("keys of KV layer {}", i));
    if (layer.values_in_keys) continue;
    kv.values = maker.make(layer, layer.value_dim, fmt::format("values of KV layer {}", i));
  }
  make_states(device, state);
  const uint64_t entries = uint64_t{options.max_slots} * options.max_pages_per_slot;
  state.block_table = gpu::Buffer(device, entries * 4, gpu::BufferUse::storage, "block table");
  state.last_tokens =
      gpu::Buffer(device, uint64_t{options.max_slots} * 4, gpu::BufferUse::storage, "last tokens");
  return state;
}

void update_table(gpu::Device& device, const State& state, const TableUpdate& update) {
  if (update.slot >= state.max_slots || update.first > state.page_stride ||
      update.pages.size() > state.page_stride - update.first) {
    fail("table update: slot {}, pages {}..{}: there are {} slots of {} pages", update.slot,
         update.first, update.first + update.pages.size(), state.max_slots, state.page_stride);
  }
  for (const uint32_t page : update.pages) {
    if (page >= state.num_pages) fail("table update: page {} of {}", page, state.num_pages);
  }
  const uint64_t at = uint64_t{update.slot} * state.page_stride + update.first;
  device.write(state.block_table, at * 4, std::as_bytes(std::span(update.pages)));
}

}  // namespace wisp::backend::webgpu
