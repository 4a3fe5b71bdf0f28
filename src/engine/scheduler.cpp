#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/random.h"

namespace wisp::engine {

namespace {

// Separate streams of random numbers for arrival, slots and pages.
std::optional<uint64_t> stream(const std::optional<uint64_t>& seed, uint64_t number) {
  if (!seed) return std::nullopt;
  return random_bits(*seed, number);
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options),
      pages_(options.num_pages, stream(options.shuffle_seed, 0)),
      slots_(options.max_slots, stream(options.shuffle_seed, 1)) {}

Sequence& Scheduler::add(RequestId id, Request request) {
  const auto number = static_cast<uint64_t>(id);
  const auto arrival = stream(options_.shuffle_seed, 2);
  const uint64_t order = arrival ? random_bits(*arrival, number) : number;
  const auto place = std::upper_bound(
      sequences_.begin(), sequences_.end(), order,
      [](uint64_t value, const auto& sequence) { return value < sequence->order; });
  return **sequences_.insert(
      place, std::make_unique<Sequence>(id, std::move(request), options_.context, order, pages_));
}

Sequence* Scheduler::find(RequestId id) {
  for (const auto& sequence : sequences_) {
    if (sequence->id == id && sequence->status != SequenceStatus::finished) return sequence.get();
  }
  return nullptr;
}

Batch Scheduler::next() {
  collect();
  Batch batch;
  uint64_t preempted = 0;
  do {  // again when all that was chosen was preempted: now the others have their turn
    preempted = num_preemptions_;
    admit(batch);
    std::vector<Sequence*> chosen;
    if (!choose_decodes(chosen) || !reserve_pages(chosen, batch)) return batch;
    for (Sequence* sequence : chosen) {
      if (sequence->status != SequenceStatus::running) continue;  // preempted or failed just now
      sequence->turn = ++turn_;
      commit(batch.decode, *sequence, 1);
    }
    add_prompts(batch);
  } while (batch.empty() && batch.failed.empty() && num_preemptions_ > preempted);
  return batch;
}

void Scheduler::admit(Batch& batch) {
  for (const auto& owned : sequences_) {
    Sequence& sequence = *owned;
    if (sequence.status != SequenceStatus::waiting) continue;
    const auto positions = std::min<uint64_t>(sequence.tokens.size(), sequence.num_columns);
    const uint32_t needed = pages_for(positions);
    if (needed > pages_.size()) {
      fail_sequence(batch, sequence,
                    fmt::format("{} tokens need {} KV pages, there are {} in all", positions,
                                needed, pages_.size()));
      continue;
    }
    if (slots_.num_free() == 0 || !sequence.pages.grow_to(needed)) return;
    sequence.slot = slots_.take();
    sequence.status = SequenceStatus::running;
  }
}

// False: some decoding sequences wait for the host, and without them the step would be thinner than
// it need be.
bool Scheduler::choose_decodes(std::vector<Sequence*>& chosen) {
  uint32_t num_decoding = 0;
  for (const auto& sequence : sequences_) {
    if (sequence->status != SequenceStatus::running || !sequence->decoding()) continue;
    ++num_decoding;
    if (sequence->ready()) chosen.push_back(sequence.get());
  }
  const uint32_t width = std::min(num_decoding, options_.decode_columns);
  if (chosen.size() < width) return false;
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Sequence* a, const Sequence* b) { return a->turn < b->turn; });
  chosen.resize(width);
  return true;
}

// Serves the oldest first, so that whoever is preempted for one has not been served yet. False:
// steps in flight have to come back first.
bool Scheduler::reserve_pages(std::vector<Sequence*> chosen, Batch& batch) {
  std::sort(chosen.begin(), chosen.end(),
            [](const Sequence* a, const Sequence* b) { return a->order < b->order; });
  for (Sequence* sequence : chosen) {
    const uint32_t needed = pages_for(uint64_t{sequence->cursor} + 1);
    while (sequence->status == SequenceStatus::running && !sequence->pages.grow_to(needed)) {
      if (any_in_flight()) return false;
      if (needed > pages_.size()) {
        fail_sequence(batch, *sequence,
                      fmt::format("position {} needs KV page {}, there are {} in all",
                                  sequence->cursor, needed, pages_.size()));
        break;
      }
      release(youngest_running());
      ++num_preemptions_;
    }
  }
  return true;
}

void Scheduler::add_prompts(Batch& batch) {
  uint32_t left = options_.prefill_columns;
  for (const auto& owned : sequences_) {
    Sequence& sequence = *owned;
    if (sequence.status != SequenceStatus::running || !sequence.in_prompt()) continue;
    if (!sequence.ready()) continue;
    uint32_t end = sequence.cursor +
                   std::min({sequence.num_prompt - sequence.cursor, options_.prefill_chunk, left});
    if (end < sequence.num_prompt) end -= end % kChunkMultiple;
    if (end <= sequence.cursor) continue;
    left -= end - sequence.cursor;
    commit(batch.prefill, sequence, end - sequence.cursor);
  }
}

void Scheduler::commit(std::vector<Piece>& pieces, Sequence& sequence, uint32_t count) {
  pieces.push_back({&sequence, sequence.cursor, count});
  sequence.cursor += count;
  ++sequence.in_flight;
}

void Scheduler::step_done(Sequence& sequence) {
  ensure(sequence.in_flight > 0, "Scheduler: a step came back twice");
  --sequence.in_flight;
}

void Scheduler::finish(Sequence& sequence) { sequence.status = SequenceStatus::finished; }

void Scheduler::fail_sequence(Batch& batch, Sequence& sequence, std::string error) {
  finish(sequence);
  batch.failed.push_back({&sequence, std::move(error)});
}

void Scheduler::collect() {
  std::erase_if(sequences_, [this](const auto& sequence) {
    if (sequence->status != SequenceStatus::finished || sequence->in_flight > 0) return false;
    release(*sequence);
    return true;
  });
}

// Gives slot and pages back; what was computed is lost, what was reported is kept.
void Scheduler::release(Sequence& sequence) {
  ensure(sequence.in_flight == 0, "Scheduler: pages released under a step in flight");
  if (sequence.slot) slots_.release(*sequence.slot);
  sequence.slot.reset();
  sequence.pages.clear();
  sequence.num_pages_sent = 0;
  sequence.cursor = 0;
  sequence.status = SequenceStatus::waiting;
}

bool Scheduler::any_in_flight() const {
  return std::any_of(sequences_.begin(), sequences_.end(),
                     [](const auto& sequence) { return sequence->in_flight > 0; });
}

Sequence& Scheduler::youngest_running() {
  const auto found = std::find_if(sequences_.rbegin(), sequences_.rend(), [](const auto& sequence) {
    return sequence->status == SequenceStatus::running;
  });
  ensure(found != sequences_.rend(), "Scheduler: pages are lost");
  return **found;
}

}  // namespace wisp::engine
