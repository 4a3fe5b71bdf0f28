// One request as it runs: its tokens, how far it is, what it holds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "engine/pages.h"

namespace wisp::engine {

enum class SequenceStatus : uint8_t { waiting, running, finished };

// Positions 0..num_prompt-1 run in the prefill class, all others in the decode class; that is so in
// a replay too. Column p takes tokens[p]; its logits choose tokens[p + 1] from p + 1 = num_given
// on.
struct Sequence {
  Sequence(RequestId id, Request request, uint32_t context, uint64_t order, IdPool& pages);

  RequestId id;
  Request request;       // prompt and forced are moved into `tokens`
  uint32_t context = 0;  // positions it may have
  uint64_t order = 0;    // the lower, the older: first in the queue, last to be preempted
  uint32_t num_prompt = 0;
  uint32_t num_given = 0;       // prompt and forced tokens
  uint32_t num_columns = 0;     // positions to compute, unless it ends earlier
  std::vector<int32_t> tokens;  // prompt, forced, then the chosen ones that the host knows

  SequenceStatus status = SequenceStatus::waiting;
  uint32_t cursor = 0;           // next position to schedule; 0 again after preemption
  uint32_t reported = 0;         // positions whose results were taken; never goes back
  uint32_t in_flight = 0;        // steps that hold columns of it and have not come back
  uint64_t turn = 0;             // number of its last decode column among all; 0: none yet
  std::optional<uint32_t> slot;  // while running
  PageList pages;                // while running
  uint32_t num_pages_sent = 0;   // pages that the slot's row of the block table already names

  bool in_prompt() const { return cursor < num_prompt; }
  bool decoding() const { return cursor >= num_prompt && cursor < num_columns; }
  // Whether the next columns can be scheduled now: their tokens are known, or the device holds the
  // one that follows.
  bool ready() const;

  // Does the token after `position` have to be chosen?
  bool chooses(uint32_t position) const;
  // Do the logits of `position` go into the event?
  bool reports_logits(uint32_t position) const;
  // Does the column have to compute logits, and the host to read them? Never in a replay.
  bool wants_logits(uint32_t position) const;
  bool reads_logits(uint32_t position) const;
};

}  // namespace wisp::engine
