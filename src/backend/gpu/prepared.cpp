// Making a PreparedPlan: buffers, kernels, recordings. steps.cpp runs it.
#include "backend/gpu/prepared.h"

#include <algorithm>

#include "backend/gpu/fuse.h"
#include "backend/gpu/layout.h"
#include "base/checked.h"
#include "base/error.h"
#include "plan/memory.h"

namespace wisp::backend::webgpu {
namespace {

// "layer.3.attn.qkv" and "blk.3.attn.qkv" count as one row of a profile: "attn.qkv".
std::string profile_name(const plan::Op& op) {
  std::string name = op.name;
  const size_t dot = name.find('.');
  if (dot != std::string::npos) {
    const size_t end = name.find_first_not_of("0123456789", dot + 1);
    if (end != dot + 1 && end != std::string::npos && name[end] == '.') name = name.substr(end + 1);
  }
  return name.empty() ? std::string(plan::op_kind(op.body)) : name;
}

template <typename OpType>
const OpType* find_op(const plan::Plan& plan) {
  for (const plan::Op& op : plan.ops) {
    if (const auto* found = std::get_if<OpType>(&op.body)) return found;
  }
  return nullptr;
}

}  // namespace

PreparedPlan::PreparedPlan(gpu::Device& device, gpu::PipelineCache& cache, const State& state,
                           const plan::Plan& plan, std::span<const plan::ValueId> kept)
    : device_(device),
      cache_(cache),
      state_(state),
      kept_(kept.begin(), kept.end()),
      plan_(fuse(plan, state.resources, device.capabilities(), state.weights, kept)),
      body_(device),
      head_(device),
      results_read_(device, kMaxStepsInFlight, uint64_t{plan.max_columns} * 8) {
  has_head_ = find_op<plan::SelectLogits>(plan_) != nullptr;
  has_states_ = std::ranges::any_of(
      plan_.ops, [](const plan::Op& op) { return plan::state(op.body).has_value(); });
  num_positions_ = plan::num_positions(plan_, state_.resources);
  if (const auto* sample = find_op<plan::Sample>(plan_)) logits_ = sample->logits;
  make_values();
  make_step_buffers();
  make_expert_buffers();
  record();
}

gpu::Buffer PreparedPlan::make(uint64_t bytes, std::string_view label, gpu::BufferUse use) {
  work_bytes_ += bytes;
  return gpu::Buffer(device_, bytes, use, label);
}

void PreparedPlan::make_values() {
  const plan::MemoryPlan memory = plan::plan_memory(plan_, kept_);
  buffer_of_value_ = memory.buffer_of_value;
  // Rows are padded here, so the sizes are counted again.
  std::vector<uint64_t> sizes(memory.buffer_bytes.size(), 0);
  for (size_t v = 0; v < plan_.values.size(); ++v) {
    if (buffer_of_value_[v] >= sizes.size()) continue;
    const plan::Value& value = plan_.values[v];
    const uint64_t rows = value.rows == plan::Rows::columns ? plan_.max_columns : plan_.max_logits;
    uint64_t& size = sizes[buffer_of_value_[v]];
    size = std::max(size, rows * value_stride(value) * 4);
  }
  for (size_t b = 0; b < sizes.size(); ++b) {
    buffers_.push_back(make(sizes[b], fmt::format("{} values {}", plan_.name, b)));
  }
}

void PreparedPlan::make_step_buffers() {
  const uint64_t columns = plan_.max_columns;
  step_info_ = make(sizeof(StepInfo), "step info", gpu::BufferUse::uniform);
  columns_ = make(columns * 16, "columns");
  tiles_ = make(columns * 16, "tiles");
  if (has_states_) {
    runs_ = make(columns * 16, "runs");
    state_copies_ = make(uint64_t{state_.num_states} * 8, "state copies");
  }
  logit_columns_ = make(columns * 4, "logit columns");
  results_ = make(columns * 8, "results");
  unused_ = make(256, "unused");
  if (logits_) {
    const uint32_t width = plan_[*logits_].width;
    const uint64_t rows = plan_.max_logits;
    sampling_ = make(columns * sizeof(SamplingWords), "sampling");
    chunk_bests_ = make(rows * ceil_div(width, kBestChunk) * 16, "chunk bests");
    chunk_masses_ = make(rows * ceil_div(width, kSampleChunk) * 16, "chunk masses");
    selections_ = make(rows * kSelectionsBytes, "selections");
    histograms_ = make(rows * kHistogramsBytes, "histograms");
  }
  // One pair for all layers: their attention runs one after the other.
  uint64_t values = 0;
  uint64_t stats = 0;
  for (const plan::Op& op : plan_.ops) {
    const auto* attention = std::get_if<plan::Attention>(&op.body);
    if (attention == nullptr || op.kernel_class != plan::KernelClass::decode) continue;
    const uint64_t rows = columns * attention->num_heads * max_ranges(state_.page_stride);
    const uint32_t dim = state_.resources.kv_layers[plan::index(attention->kv_layer)].value_dim;
    values = std::max(values, rows * dim * 4);
    stats = std::max(stats, rows * 8);
  }
  if (values > 0 && max_ranges(state_.page_stride) > 1) {
    range_values_ = make(values, "attention ranges");
    range_stats_ = make(stats, "attention range sums");
  }
}

// One pair for all: an op's sorted items are used before those of the next.
void PreparedPlan::make_expert_buffers() {
  const uint32_t rows = std::max(plan_.max_columns, plan_.max_logits);
  uint64_t tiles = 0;
  uint64_t items = 0;
  for (const plan::Op& op : plan_.ops) {
    const auto* experts = std::get_if<plan::ExpertLinear>(&op.body);
    if (experts == nullptr) continue;
    tiles = std::max<uint64_t>(tiles, max_expert_tiles(*experts, rows));
    items = std::max<uint64_t>(items, uint64_t{rows} * experts->top_k);
  }
  if (items == 0) return;
  expert_tiles_ = make(tiles * 16, "expert tiles");
  expert_items_ = make(items * 4, "expert items");
}

void PreparedPlan::record() {
  const ChooseContext context{.capabilities = device_.capabilities(),
                              .plan = plan_,
                              .resources = state_.resources,
                              .weights = state_.weights,
                              .page_stride = state_.page_stride};
  std::vector<KernelUse> uses;
  std::vector<const plan::Op*> op_of_use;  // null: a copy of a state
  for (const plan::Op& op : plan_.ops) {
    if (const auto state = plan::state(op.body)) {
      uses.push_back(choose_state_copy(*state, state_.resources));
      op_of_use.push_back(nullptr);
    }
  }
  for (const plan::Op& op : plan_.ops) {
    with_context(fmt::format("plan {}: {} {}", plan_.name, plan::op_kind(op.body), op.name), [&] {
      for (KernelUse& use : choose(op, context)) {
        uses.push_back(std::move(use));
        op_of_use.push_back(&op);
      }
    });
  }
  std::vector<gpu::KernelSpec> specs;
  specs.reserve(uses.size());
  for (const KernelUse& use : uses) specs.push_back(use.spec);
  const std::vector<gpu::KernelPtr> kernels = cache_.compile(specs);

  bool head = false;
  for (size_t i = 0; i < uses.size(); ++i) {
    const plan::Op* op = op_of_use[i];
    gpu::Dispatch dispatch{
        .name = kernels[i]->label(), .kernel = kernels[i], .params = std::move(uses[i].params)};
    if (op != nullptr) {
      head = head || std::holds_alternative<plan::SelectLogits>(op->body);
      if (plan::op_kind(op->body) != "attention") dispatch.name = profile_name(*op);
    }
    for (const gpu::Binding& wanted : kernels[i]->bindings()) {
      const auto found = std::ranges::find(uses[i].bindings, wanted.name, &Binding::name);
      ensure(found != uses[i].bindings.end(),
             fmt::format("{}: a source for '{}'", kernels[i]->label(), wanted.name));
      dispatch.bindings.push_back(resolve(*found));
    }
    const std::string where = op != nullptr ? op->name : dispatch.name;
    Part& part = head ? head_ : body_;
    const size_t step = with_context(where, [&] { return part.recording.dispatch(dispatch); });
    part.items.push_back({step, head, uses[i].grid, uses[i].when});
  }
  body_.recording.prepare();
  head_.recording.prepare();
}

gpu::Slice PreparedPlan::resolve(const Binding& binding) const {
  const auto part = [&]() -> const WeightPart& {
    return state_.weights[binding.index][binding.part];
  };
  const auto whole = [](const gpu::Buffer& buffer) { return gpu::Slice{.buffer = &buffer}; };
  switch (binding.bound) {
    case Bound::value:
      return whole(buffers_[buffer_of_value_[binding.index]]);
    case Bound::weight_data:
      return whole(part().data);
    case Bound::weight_side:
      return whole(part().side ? part().side : unused_);
    case Bound::keys:
      return whole(state_.kv[binding.index].keys);
    case Bound::values:
      return whole(state_.kv[binding.index].values);
    case Bound::step:
      return whole(step_info_);
    case Bound::columns:
      return whole(columns_);
    case Bound::runs:
      return whole(runs_);
    case Bound::states:
      return whole(state_.states[binding.index]);
    case Bound::state_copies:
      return whole(state_copies_);
    case Bound::block_table:
      return whole(state_.block_table);
    case Bound::last_tokens:
      return whole(state_.last_tokens);
    case Bound::logit_columns:
      return whole(logit_columns_);
    case Bound::tiles:
      return whole(tiles_);
    case Bound::results:
      return whole(results_);
    case Bound::sampling:
      return whole(sampling_);
    case Bound::chunk_bests:
      return whole(chunk_bests_);
    case Bound::chunk_masses:
      return whole(chunk_masses_);
    case Bound::selections:
      return whole(selections_);
    case Bound::histograms:
      return whole(histograms_);
    case Bound::range_values:
      return whole(range_values_);
    case Bound::range_stats:
      return whole(range_stats_);
    case Bound::expert_tiles:
      return whole(expert_tiles_);
    case Bound::expert_items:
      return whole(expert_items_);
    case Bound::unused:
      return whole(unused_);
  }
  fail("a binding of no known kind");
}

}  // namespace wisp::backend::webgpu
