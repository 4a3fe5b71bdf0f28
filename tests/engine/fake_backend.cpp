#include "fake_backend.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "engine/random.h"

namespace wisp::engine {

uint64_t fake_history(uint64_t history, int32_t token, uint32_t position, bool prefill) {
  const uint64_t cell = (uint64_t{position} << 33) | (uint64_t{prefill} << 32) |
                        static_cast<uint64_t>(static_cast<uint32_t>(token));
  return mix_bits(history * 3 + mix_bits(cell + 1));
}

// 16 levels, so that ties are common.
std::vector<float> fake_logits(uint64_t history, uint32_t vocab_size) {
  std::vector<float> logits(vocab_size);
  for (uint32_t i = 0; i < vocab_size; ++i) {
    logits[i] = static_cast<float>(random_bits(history, i) % 16) * 0.25F - 2.0F;
  }
  return logits;
}

int32_t fake_argmax(const std::vector<float>& logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return static_cast<int32_t>(best);
}

FakeBackend::FakeBackend(const FakeOptions& options)
    : options_(options), pages_(options.num_pages), slots_(options.max_slots) {
  for (Page& page : pages_) page.cells.resize(plan::kPageTokens);
  for (Slot& slot : slots_) slot.table.resize(options.max_pages_per_slot);
}

backend::Ticket FakeBackend::submit(backend::PlanHandle plan, const backend::Step& step) {
  const bool prefill = plan == kPrefill;
  ensure(prefill || plan == kDecode, "fake: unknown plan");
  if (options_.fail_submit == num_submitted_) fail("fake: device lost in submit");
  ensure(in_flight_.size() < backend::kMaxStepsInFlight, "fake: too many steps in flight");
  ensure(!step.columns.empty(), "fake: a step without columns");
  const uint32_t capacity = prefill ? options_.prefill_columns : options_.decode_columns;
  ensure(step.columns.size() <= capacity, "fake: more columns than the plan has");
  check_order(step, prefill);

  ensure(step.sampling.empty() || step.sampling.size() == step.logit_columns.size(),
         "fake: sampling is not one for each logit column");
  for (const backend::TableUpdate& update : step.table_updates) update_table(update);
  InFlight started;
  for (const backend::Column& column : step.columns) write_column(column, prefill, started);
  for (const uint32_t column : step.logit_columns) read_row(step, column, started.result);
  if (!step.read_logits) started.result.logits.clear();

  shapes_.push_back({prefill, step.columns.size(), step.logit_columns.size(), step.read_logits});
  const backend::Ticket ticket{++num_submitted_};
  in_flight_.emplace(ticket, std::move(started));
  max_in_flight_ = std::max(max_in_flight_, in_flight_.size());
  return ticket;
}

// Columns of one slot are contiguous and consecutive; prompt chunks end at multiples of 64 but the
// last; the decode class takes one column a sequence.
void FakeBackend::check_order(const backend::Step& step, bool prefill) const {
  std::set<uint32_t> seen;
  for (size_t i = 0; i < step.columns.size(); ++i) {
    const backend::Column& column = step.columns[i];
    ensure(column.slot < slots_.size(), "fake: slot out of range");
    const bool first = i == 0 || step.columns[i - 1].slot != column.slot;
    if (first) {
      ensure(seen.insert(column.slot).second, "fake: columns of a slot are not contiguous");
      const Slot& slot = slots_[column.slot];
      ensure(column.position == 0 || column.position == slot.next_position,
             "fake: a position was skipped or repeated");
      ensure(!prefill || column.position % 64 == 0, "fake: a chunk starts off a multiple of 64");
      ensure(!prefill || column.position == 0 || !slot.prompt_ended,
             "fake: prefill columns after the end of a prompt");
    } else {
      ensure(prefill, "fake: two decode columns of one slot");
      ensure(column.position == step.columns[i - 1].position + 1,
             "fake: positions of a slot are not consecutive");
    }
    ensure(!prefill || column.token, "fake: a prompt token is missing");
  }
  uint32_t least = 0;
  for (const uint32_t column : step.logit_columns) {
    ensure(column >= least && column < step.columns.size(), "fake: logit columns not ascending");
    least = column + 1;
  }
}

void FakeBackend::update_table(const backend::TableUpdate& update) {
  ensure(update.slot < slots_.size(), "fake: slot of a table update out of range");
  Slot& slot = slots_[update.slot];
  ensure(!update.pages.empty(), "fake: an empty table update");
  ensure(update.first + update.pages.size() <= slot.table.size(), "fake: block table overrun");
  for (size_t i = 0; i < update.pages.size(); ++i) {
    const uint32_t id = update.pages[i];
    ensure(id < pages_.size(), "fake: page out of range");
    for (const auto& [ticket, step] : in_flight_) {
      ensure(!step.pages.contains(id), "fake: a page was given away under a step in flight");
    }
    pages_[id] = {std::vector<Cell>(plan::kPageTokens), update.slot};
    slot.table[update.first + i] = id;
  }
}

FakeBackend::Cell& FakeBackend::cell(uint32_t slot, uint32_t position, uint32_t* page_out) {
  const uint32_t index = position / plan::kPageTokens;
  ensure(index < slots_[slot].table.size(), "fake: position past the block table");
  const auto id = slots_[slot].table[index];
  ensure(id.has_value(), "fake: a page is missing in the block table");
  Page& page = pages_[*id];
  ensure(page.slot == slot, "fake: a page of another slot was touched");
  if (page_out != nullptr) *page_out = *id;
  return page.cells[position % plan::kPageTokens];
}

void FakeBackend::write_column(const backend::Column& column, bool prefill, InFlight& touched) {
  Slot& slot = slots_[column.slot];
  if (column.position == 0) {
    for (const auto& [ticket, step] : in_flight_) {
      ensure(!step.slots.contains(column.slot), "fake: a slot was given away under a step");
    }
    slot.prompt_ended = false;
    slot.last_token.reset();
  }
  slot.prompt_ended = !prefill || (column.position + 1) % 64 != 0;
  int32_t token = 0;
  if (column.token) {
    token = *column.token;
  } else {
    ensure(slot.last_token && slot.last_position + 1 == column.position,
           "fake: the device has no token for this position");
    token = *slot.last_token;
    ++num_chained_;
  }
  ensure(token >= 0 && static_cast<uint32_t>(token) < options_.vocab_size,
         "fake: token out of range");
  uint32_t page = 0;
  cell(column.slot, column.position, &page) = {token, column.position, prefill, true};
  slot.next_position = column.position + 1;
  touched.slots.insert(column.slot);
  touched.pages.insert(page);
}

void FakeBackend::read_row(const backend::Step& step, uint32_t column,
                           backend::StepResult& result) {
  const backend::Column& wanted = step.columns[column];
  uint64_t history = 0;
  Cell last;
  for (uint32_t position = 0; position <= wanted.position; ++position) {
    last = cell(wanted.slot, position);
    ensure(last.written && last.position == position, "fake: a key is missing in the cache");
    history = fake_history(history, last.token, position, last.prefill);
  }
  std::vector<float> logits = fake_logits(history, options_.vocab_size);
  const bool finite = options_.poison != last.token;
  if (!finite) logits[0] = std::numeric_limits<float>::quiet_NaN();
  Slot& slot = slots_[wanted.slot];
  slot.last_token = fake_argmax(logits);
  const size_t row = result.tokens.size();
  if (finite && !step.sampling.empty() && !step.sampling[row].greedy()) {
    const float best = logits[static_cast<size_t>(*slot.last_token)];
    slot.last_token = static_cast<int32_t>(backend::sample(logits, best, step.sampling[row]));
  }
  slot.last_position = wanted.position;
  result.tokens.push_back(*slot.last_token);
  result.finite.push_back(finite ? 1 : 0);
  result.logits.insert(result.logits.end(), logits.begin(), logits.end());
}

backend::StepResult FakeBackend::wait(backend::Ticket ticket) {
  const auto found = in_flight_.find(ticket);
  ensure(found != in_flight_.end(), "fake: unknown ticket");
  backend::StepResult result = std::move(found->second.result);
  in_flight_.erase(found);
  if (options_.fail_wait == num_waited_++) fail("fake: device lost in wait");
  return result;
}

void FakeBackend::load(backend::LoadOptions) {}
backend::PlanHandle FakeBackend::prepare(const plan::Plan&, std::span<const plan::ValueId>) {
  fail("fake: there are two plans");
}
void FakeBackend::write_value(backend::PlanHandle, plan::ValueId, std::span<const std::byte>) {
  fail("fake: no values");
}
std::vector<std::byte> FakeBackend::read_value(backend::PlanHandle, plan::ValueId, uint32_t) {
  fail("fake: no values");
}
std::vector<float> FakeBackend::read_state(plan::StateId, uint32_t) { fail("fake: no states"); }
void FakeBackend::write_state(plan::StateId, uint32_t, std::span<const float>) {
  fail("fake: no states");
}
backend::BackendInfo FakeBackend::info() const { return {}; }
void FakeBackend::set_profiling(bool, backend::Timed) {}
backend::Profile FakeBackend::take_profile() { return {}; }

}  // namespace wisp::engine
