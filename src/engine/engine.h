// The engine: many sequences in one running batch. Start reading here: a Request goes in, Events
// come out.
//
//   Engine engine(backend, plans, options);
//   const RequestId id = engine.add({.prompt = ids, .max_new_tokens = 64, .end_tokens = {2}});
//   while (engine.busy()) for (const Event& event : engine.step()) …
//
// One thread drives an Engine. A request's tokens and logits do not depend on what else runs, on
// its slot or its pages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/sampler.h"

namespace wisp::engine {

enum class RequestId : uint64_t {};

// Tokens 0..n-1 of a sequence are prompt, forced and chosen ones in this order. The column at
// position p takes token p, and its logits say what token p + 1 may be. With max_new_tokens = N the
// last of the given tokens and every chosen token but the last choose one, so N rows of logits
// choose N tokens and the last of them is never run.
struct Request {
  std::vector<int32_t> prompt = {};  // runs in the prefill class; may be empty
  // Tokens after the prompt that are given, not chosen: they run one by one in the decode class, as
  // if generated.
  std::vector<int32_t> forced = {};
  uint32_t max_new_tokens = 0;  // tokens to choose after prompt and forced; 0: only run those
  std::vector<int32_t> end_tokens =
      {};  // a chosen token of these ends the request (it is reported)
  SamplingOptions sampling = {};
  bool prompt_logits = false;    // report the logits of every prompt position
  bool prompt_progress = false;  // report the end of every prompt chunk
  // Report the logits of the last prompt position and of every later one: the rows that foretell
  // the forced and the chosen tokens, in their order.
  bool generated_logits = false;
};

// length: everything asked for is done. context_full: the last position of the context was run and
// more tokens were asked for; its own token is still reported.
enum class FinishReason : uint8_t { none, length, end_token, context_full, cancelled, error };

// One position of one request became known. A position has an event if a token was chosen from it,
// its logits were asked for, a prompt chunk to report ends there, or the request does. Events of a
// request come in order of position, each position once, whatever was preempted.
struct Event {
  RequestId request{};
  uint32_t position = 0;              // cancelled, error: the first position without a result
  std::optional<int32_t> token = {};  // chosen from the logits of this position: token position + 1
  std::vector<float> logits = {};     // [vocab_size] where asked for
  FinishReason finish = FinishReason::none;  // set on the last event of a request
  std::string error = {};                    // with FinishReason::error: one line
};

// Both plans of one model, prepared on the backend.
struct ModelPlans {
  backend::PlanHandle prefill{};
  backend::PlanHandle decode{};
  uint32_t prefill_columns = 512;  // capacity of the prefill plan; at least 64 or the context
  uint32_t decode_columns = 1;     // capacity of the decode plan; more than max_slots is no use
  uint32_t vocab_size = 0;
};

struct EngineOptions {
  uint32_t context = 0;             // positions a sequence may have
  uint32_t max_slots = 1;           // sequences that run at once
  uint32_t num_pages = 0;           // KV pages in all; fewer than all slots need means preemption
  uint32_t max_pages_per_slot = 0;  // block-table stride
  uint32_t prefill_chunk = 512;     // prompt tokens of one sequence in a step; a multiple of 64
  // Permutes arrival, slots and pages (tests of batch invariance).
  std::optional<uint64_t> shuffle_seed = {};
};

struct EngineStats {
  uint64_t steps = 0;             // submitted to the backend
  uint64_t prompt_tokens = 0;     // columns run in the prefill class, replays included
  uint64_t generated_tokens = 0;  // tokens chosen
  uint64_t preemptions = 0;
};

class Engine {
 public:
  // `backend` must outlive the engine. Throws Error when the options do not fit together.
  Engine(backend::Backend& backend, const ModelPlans& plans, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Queues a request. Throws Error for an empty one, a token outside the vocabulary, or one longer
  // than the context, naming both numbers.
  RequestId add(Request request);

  // Ends a request: the next step's events hold its last one, which says cancelled. Unknown and
  // finished ids are ignored.
  void cancel(RequestId id);

  // Whether step() has anything to do or to tell.
  bool busy() const;

  // Queues steps on the device, a few ahead while no decision of the host is needed (sequences
  // without a repetition penalty go on from the token that the device chose), waits for the oldest
  // one and returns what became known, which may be nothing. Throws what the backend throws when
  // the device failed; the engine is then unusable: busy() is false and every further call throws.
  std::vector<Event> step();

  EngineStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wisp::engine
