#include "backend/cpu/backend.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "backend/cpu/block_tables.h"
#include "backend/cpu/context.h"
#include "backend/cpu/ops.h"
#include "backend/cpu/profile.h"
#include "backend/cpu/weights.h"
#include "backend/state_copies.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/overloaded.h"
#include "plan/memory.h"

namespace wisp::backend {
namespace cpu {
namespace {

struct Prepared {
  plan::Plan plan;
  std::vector<plan::ValueId> kept;
  std::vector<Buffer> buffers;
  std::vector<std::byte*> values;  // by value index
  size_t head = 0;                 // index of SelectLogits, or the number of ops
  bool uses_tokens = false;
  bool uses_pages = false;
  uint32_t num_positions = 0;  // plan::num_positions
};

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(size_t threads) : pool_(threads) { scratch_.workers.resize(pool_.size()); }

  void load(LoadOptions options) override;
  PlanHandle prepare(const plan::Plan& plan, std::span<const plan::ValueId> kept) override;
  Ticket submit(PlanHandle handle, const Step& step) override;
  StepResult wait(Ticket ticket) override;
  void write_value(PlanHandle handle, plan::ValueId value,
                   std::span<const std::byte> rows) override;
  std::vector<std::byte> read_value(PlanHandle handle, plan::ValueId value,
                                    uint32_t num_rows) override;
  std::vector<float> read_state(plan::StateId state, uint32_t row) override {
    const std::span<float> values = state_row(state, row);
    return {values.begin(), values.end()};
  }
  void write_state(plan::StateId state, uint32_t row, std::span<const float> values) override {
    ensure(values.size() == state_row(state, row).size(), "a whole row of a state is written");
    std::ranges::copy(values, state_row(state, row).begin());
  }
  BackendInfo info() const override;
  void set_profiling(bool on, Timed timed) override {
    profiling_ = on;
    timed_ = timed;
  }
  Profile take_profile() override {
    return {.ops = op_times_.take(), .steps = step_times_.take(), .host = {}, .note = {}};
  }

 private:
  Prepared& prepared(PlanHandle handle);
  std::vector<ColumnView> view_columns(const Prepared& prepared, const Step& step) const;
  void copy_states(const Step& step);
  std::span<float> state_row(plan::StateId state, uint32_t row) const {
    ensure(plan::index(state) < states_.size() && row < num_states_, "the state has the row");
    const StateRows& rows = states_[plan::index(state)];
    return {rows.row(row), rows.width};
  }
  void run_ops(Prepared& prepared, const Step& step, std::span<const ColumnView> columns,
               size_t begin, size_t end, std::span<const uint32_t> logit_columns,
               StepResult& result);
  void run_sample(const OpContext& context, const plan::Sample& op, const Step& step,
                  StepResult& result);

  ThreadPool pool_;
  Scratch scratch_;
  bool loaded_ = false;
  plan::Resources resources_;
  std::vector<WeightView> weights_;
  std::vector<Buffer> weight_copies_;
  std::vector<KvPages> kv_;
  std::vector<StateRows> states_;
  uint32_t num_states_ = 0;
  BlockTables tables_;
  std::vector<int32_t> last_tokens_;  // by slot; -1: none yet
  std::vector<std::unique_ptr<Prepared>> plans_;
  std::map<uint64_t, StepResult> results_;  // by ticket
  uint64_t next_ticket_ = 1;
  bool profiling_ = false;
  Timed timed_ = Timed::ops;
  Times op_times_, step_times_;
};

void CpuBackend::load(LoadOptions options) {
  ensure(!loaded_, "load comes once");
  resources_ = std::move(options.resources);
  weights_ = view_weights(resources_, options.weights, weight_copies_);
  tables_ = BlockTables(options.num_pages, options.max_slots, options.max_pages_per_slot);
  last_tokens_.assign(options.max_slots, -1);
  for (size_t i = 0; i < resources_.kv_layers.size(); ++i) {
    with_context(fmt::format("KV cache of layer {}, {} pages", i, options.num_pages), [&] {
      const plan::KvLayer& shape = resources_.kv_layers[i];
      KvPages& pages = kv_.emplace_back();
      pages.shape = shape;
      pages.dtype = resources_.kv_dtype;
      const uint64_t tokens = uint64_t{options.num_pages} * plan::kPageTokens;
      const uint64_t heads = checked_mul(tokens, shape.num_kv_heads, "size");
      const uint64_t unit = pages.element_bytes();
      pages.keys = Buffer(checked_mul(heads, unit * shape.head_dim, "size"));
      if (!shape.values_in_keys) {
        pages.values = Buffer(checked_mul(heads, unit * shape.value_dim, "size"));
      }
    });
  }
  num_states_ = std::max(options.num_states, options.max_slots);
  for (size_t i = 0; i < resources_.states.size(); ++i) {
    with_context(fmt::format("state {} of {} sequences", i, num_states_), [&] {
      const uint64_t row = uint64_t{resources_.states[i].width} * sizeof(float);
      states_.push_back(
          {resources_.states[i].width, Buffer(checked_mul(row, num_states_, "size"))});
    });
  }
  loaded_ = true;
  if (options.progress) {
    const uint64_t bytes = info().weight_bytes;
    options.progress(bytes, bytes);
  }
}

PlanHandle CpuBackend::prepare(const plan::Plan& plan, std::span<const plan::ValueId> kept) {
  ensure(loaded_, "load comes before prepare");
  plan::verify(plan, resources_);
  auto made = std::make_unique<Prepared>();
  made->plan = plan;
  made->kept.assign(kept.begin(), kept.end());
  const plan::MemoryPlan memory = plan::plan_memory(plan, kept);
  with_context(fmt::format("plan {}", plan.name), [&] {
    for (const uint64_t bytes : memory.buffer_bytes) made->buffers.emplace_back(bytes);
  });
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const uint32_t buffer = memory.buffer_of_value[v];
    made->values.push_back(buffer < made->buffers.size() ? made->buffers[buffer].data() : nullptr);
  }
  made->head = plan.ops.size();
  made->num_positions = plan::num_positions(plan, resources_);
  for (size_t i = plan.ops.size(); i-- > 0;) {
    std::visit(Overloaded{
                   [&](const plan::Embed&) { made->uses_tokens = true; },
                   [&](const plan::RopeKv&) { made->uses_pages = true; },
                   [&](const plan::Attention&) { made->uses_pages = true; },
                   [&](const plan::SelectLogits&) { made->head = i; },
                   [](const auto&) {},
               },
               plan.ops[i].body);
  }
  plans_.push_back(std::move(made));
  return PlanHandle{static_cast<uint32_t>(plans_.size() - 1)};
}

Prepared& CpuBackend::prepared(PlanHandle handle) {
  const auto index = static_cast<size_t>(handle);
  ensure(index < plans_.size(), "the plan was prepared here");
  return *plans_[index];
}

std::vector<ColumnView> CpuBackend::view_columns(const Prepared& prepared, const Step& step) const {
  std::vector<ColumnView> views;
  views.reserve(step.columns.size());
  for (size_t i = 0; i < step.columns.size(); ++i) {
    const Column& column = step.columns[i];
    const int32_t token = column.token.value_or(last_tokens_[column.slot]);
    if (prepared.uses_tokens && (token < 0 || int64_t{token} >= resources_.vocab_size)) {
      if (!column.token) fail("slot {} has no last token", column.slot);
      fail("token {} is out of range, the vocabulary has {}", token, resources_.vocab_size);
    }
    if (column.position >= prepared.num_positions) {
      fail("position {}: the model's tables have {}", column.position, prepared.num_positions);
    }
    const bool last = i + 1 == step.columns.size() || step.columns[i + 1].slot != column.slot;
    if (prepared.uses_pages && last) tables_.check(column.slot, 0, column.position);
    views.push_back({token, column.position, column.slot, tables_.row(column.slot)});
  }
  return views;
}

void CpuBackend::copy_states(const Step& step) {
  check_copies(step, num_states_);
  for (const StateRows& state : states_) {
    for (const StateCopy& copy : step.state_copies) {
      std::memcpy(state.row(copy.to), state.row(copy.from), state.width * sizeof(float));
    }
  }
}

Ticket CpuBackend::submit(PlanHandle handle, const Step& step) {
  Prepared& prepared = this->prepared(handle);
  ensure(results_.size() < kMaxStepsInFlight, "not too many steps in flight");
  check_columns(prepared.plan, step, tables_.max_slots());
  for (const TableUpdate& update : step.table_updates) tables_.update(update);
  copy_states(step);
  const std::vector<ColumnView> columns = view_columns(prepared, step);

  const auto start = std::chrono::steady_clock::now();
  StepResult result;
  run_ops(prepared, step, columns, 0, prepared.head, {}, result);
  std::span<const uint32_t> left = step.logit_columns;
  while (!left.empty() && prepared.head < prepared.plan.ops.size()) {
    const size_t rows = std::min<size_t>(left.size(), prepared.plan.max_logits);
    run_ops(prepared, step, columns, prepared.head, prepared.plan.ops.size(), left.first(rows),
            result);
    left = left.subspan(rows);
  }
  if (profiling_) {
    step_times_.add(prepared.plan.name, std::chrono::steady_clock::now() - start);
  }
  const uint64_t ticket = next_ticket_++;
  results_.emplace(ticket, std::move(result));
  return Ticket{ticket};
}

void CpuBackend::run_ops(Prepared& prepared, const Step& step, std::span<const ColumnView> columns,
                         size_t begin, size_t end, std::span<const uint32_t> logit_columns,
                         StepResult& result) {
  for (size_t i = begin; i < end; ++i) {
    const plan::Op& op = prepared.plan.ops[i];
    const OpContext context{pool_,    scratch_, prepared.plan, op.kernel_class, prepared.values,
                            weights_, kv_,      states_,       columns,         logit_columns};
    const bool timed = profiling_ && timed_ == Timed::ops;
    const auto start =
        timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    std::visit(Overloaded{
                   [&](const plan::Embed& body) { run_embed(context, body); },
                   [&](const plan::Norm& body) { run_norm(context, body); },
                   [&](const plan::Add& body) { run_add(context, body); },
                   [&](const plan::Quantize& body) { run_quantize(context, body); },
                   [&](const plan::Linear& body) { run_linear(context, body); },
                   [&](const plan::RopeKv& body) { run_rope_kv(context, body); },
                   [&](const plan::LatentKv& body) { run_latent_kv(context, body); },
                   [&](const plan::Attention& body) { run_attention(context, body); },
                   [&](const plan::Glu& body) { run_glu(context, body); },
                   [&](const plan::Gate& body) { run_gate(context, body); },
                   [&](const plan::Conv& body) { run_conv(context, body); },
                   [&](const plan::DeltaNet& body) { run_delta_net(context, body); },
                   [&](const plan::Scan& body) { run_scan(context, body); },
                   [&](const plan::Wkv& body) { run_wkv(context, body); },
                   [&](const plan::Route& body) { run_route(context, body); },
                   [&](const plan::ExpertLinear& body) { run_expert_linear(context, body); },
                   [&](const plan::Combine& body) { run_combine(context, body); },
                   [&](const plan::StreamMatch& body) { run_stream_match(context, body); },
                   [&](const plan::StreamPredict& body) { run_stream_predict(context, body); },
                   [&](const plan::StreamCorrect& body) { run_stream_correct(context, body); },
                   [&](const plan::Activate& body) { run_activate(context, body); },
                   [&](const plan::Softcap& body) { run_softcap(context, body); },
                   [&](const plan::SelectLogits& body) { run_select_logits(context, body); },
                   [&](const plan::Sample& body) { run_sample(context, body, step, result); },
               },
               op.body);
    if (timed) op_times_.add(profile_name(op), std::chrono::steady_clock::now() - start);
  }
}

void CpuBackend::run_sample(const OpContext& context, const plan::Sample& op, const Step& step,
                            StepResult& result) {
  const size_t vocab = context.width(op.logits);
  const size_t rows = context.logit_columns.size();
  const float* logits = context.floats(op.logits);
  const size_t done = result.tokens.size();  // rows of earlier passes
  const auto choose = [&](size_t row) {
    const std::span<const float> all(logits + row * vocab, vocab);
    Best best = argmax(all);
    if (best.finite && !step.sampling.empty() && !step.sampling[done + row].greedy()) {
      best.index = sample(all, all[best.index], step.sampling[done + row]);
    }
    return best;
  };
  std::vector<Best> chosen(rows);
  for_rows(context, rows, vocab, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) chosen[row] = choose(row);
  });
  for (size_t row = 0; row < rows; ++row) {
    const auto token = static_cast<int32_t>(chosen[row].index);
    result.tokens.push_back(token);
    result.finite.push_back(chosen[row].finite ? 1 : 0);
    last_tokens_[context.columns[context.logit_columns[row]].slot] = token;
  }
  if (step.read_logits) {
    result.logits.insert(result.logits.end(), logits, logits + rows * vocab);
  }
}

StepResult CpuBackend::wait(Ticket ticket) {
  auto node = results_.extract(static_cast<uint64_t>(ticket));
  ensure(!node.empty(), "a ticket is waited for once");
  return std::move(node.mapped());
}

void CpuBackend::write_value(PlanHandle handle, plan::ValueId value,
                             std::span<const std::byte> rows) {
  Prepared& prepared = this->prepared(handle);
  ensure(std::ranges::find(prepared.plan.inputs, value) != prepared.plan.inputs.end(),
         "inputs of the plan are written");
  const plan::Value& shape = prepared.plan[value];
  ensure(shape.rows == plan::Rows::columns &&
             rows.size() <= prepared.plan.max_columns * plan::row_bytes(shape),
         "the rows fit the value");
  if (!rows.empty()) std::memcpy(prepared.values[plan::index(value)], rows.data(), rows.size());
}

std::vector<std::byte> CpuBackend::read_value(PlanHandle handle, plan::ValueId value,
                                              uint32_t num_rows) {
  const Prepared& prepared = this->prepared(handle);
  ensure(std::ranges::find(prepared.kept, value) != prepared.kept.end(), "kept values are read");
  const plan::Value& shape = prepared.plan[value];
  const bool columns = shape.rows == plan::Rows::columns;
  ensure(num_rows <= (columns ? prepared.plan.max_columns : prepared.plan.max_logits),
         "the value has that many rows");
  const std::byte* from = prepared.values[plan::index(value)];
  return {from, from + num_rows * plan::row_bytes(shape)};
}

BackendInfo CpuBackend::info() const {
  BackendInfo info;
  info.kind = "cpu";
  info.steps_ahead = 2;
  info.device = fmt::format("{}, {} thread{} ({})", processor_name(), pool_.size(),
                            pool_.size() == 1 ? "" : "s", simd_target());
  for (const WeightView& weight : weights_) info.weight_bytes += weight.row_bytes * weight.rows;
  for (const KvPages& pages : kv_) info.kv_bytes += pages.keys.size() + pages.values.size();
  for (const StateRows& state : states_) info.state_bytes += state.rows.size();
  for (const auto& plan : plans_) {
    for (const Buffer& buffer : plan->buffers) info.work_bytes += buffer.size();
  }
  info.work_bytes += scratch_.shared.size() + scratch_.partials.size();
  for (const Buffer& buffer : scratch_.workers) info.work_bytes += buffer.size();
  return info;
}

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(size_t threads) {
  if (!cpu::simd_supported()) fail("cpu backend: this processor lacks SSE4 with AES and CLMUL");
  return std::make_unique<cpu::CpuBackend>(threads);
}

}  // namespace wisp::backend
