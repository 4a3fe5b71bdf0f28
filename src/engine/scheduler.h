// Decides what runs next: no backend, no clock, so the same calls give the same batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/pages.h"
#include "engine/sequence.h"

namespace wisp::engine {

// Prompt chunks end at multiples of this, counted from the start of the prompt, except the last.
inline constexpr uint32_t kChunkMultiple = 64;

struct SchedulerOptions {
  uint32_t context = 0;
  uint32_t max_slots = 0;
  uint32_t num_pages = 0;
  uint32_t prefill_chunk = 0;    // columns of one sequence in a prefill step
  uint32_t prefill_columns = 0;  // columns of a prefill step
  uint32_t decode_columns = 0;   // columns of a decode step
  std::optional<uint64_t> shuffle_seed = {};
};

// Consecutive positions of one sequence.
struct Piece {
  Sequence* sequence = nullptr;
  uint32_t first = 0;
  uint32_t count = 0;
};

// A sequence that can never get the pages it needs.
struct Failure {
  Sequence* sequence = nullptr;
  std::string error;
};

// At most one step of each class. The pieces are committed: their sequences' cursors stand behind
// them and their slots and pages are held.
struct Batch {
  std::vector<Piece> prefill;
  std::vector<Piece> decode;    // one position each
  std::vector<Failure> failed;  // already finished

  bool empty() const { return prefill.empty() && decode.empty(); }
};

// Owns the sequences and lends them slots and pages. Rules:
// - Sequences are admitted in order, when a slot and pages for all their known tokens are free.
// - A batch takes prompt chunks, oldest sequence first, up to prefill_columns, and beside them one
//   column of each decoding sequence, those that waited longest first, up to decode_columns. So
//   neither kind of work can starve the other.
// - A decode column that finds no free page preempts the youngest running sequence, which loses
// slot
//   and pages and later starts again from position 0. The oldest one always gets on.
// - Steps in flight are never disturbed: while any is, missing pages mean an empty batch (one that
//   comes back may free some).
class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);

  // Queues a request that add's checks let through.
  Sequence& add(RequestId id, Request request);

  // The sequence that has not finished, or null.
  Sequence* find(RequestId id);

  // What to run next. An empty batch: wait for a step in flight, which exists unless all is done or
  // the batch tells failures.
  Batch next();

  // A step that held a piece of `sequence` came back.
  void step_done(Sequence& sequence);

  // Ends a sequence. It and its slot and pages go when no step in flight holds columns of it; other
  // calls of the scheduler may free it at once.
  void finish(Sequence& sequence);

  // Frees the finished sequences that no step holds. Pointers to them die here and in next().
  void collect();

  bool empty() const { return sequences_.empty(); }
  uint64_t num_preemptions() const { return num_preemptions_; }
  const IdPool& pages() const { return pages_; }
  const IdPool& slots() const { return slots_; }

 private:
  void admit(Batch& batch);
  bool choose_decodes(std::vector<Sequence*>& chosen);
  bool reserve_pages(std::vector<Sequence*> chosen, Batch& batch);
  void add_prompts(Batch& batch);
  void commit(std::vector<Piece>& pieces, Sequence& sequence, uint32_t count);
  void fail_sequence(Batch& batch, Sequence& sequence, std::string error);
  void release(Sequence& sequence);
  bool any_in_flight() const;
  Sequence& youngest_running();

  SchedulerOptions options_;
  IdPool pages_;
  IdPool slots_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // by order
  uint64_t turn_ = 0;
  uint64_t num_preemptions_ = 0;
};

}  // namespace wisp::engine
