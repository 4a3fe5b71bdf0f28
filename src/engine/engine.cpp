#include "engine/engine.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <span>
#include <utility>

#include "base/error.h"
#include "engine/batch.h"
#include "engine/scheduler.h"

namespace wisp::engine {

namespace {

// A batch is at most two steps.
constexpr size_t kStepsPerBatch = 2;

void check_plans(const ModelPlans& plans, const EngineOptions& options) {
  if (plans.vocab_size == 0) fail("engine: the vocabulary is empty");
  if (plans.decode_columns == 0) fail("engine: a decode plan of 0 columns");
  const uint32_t least = std::min(kChunkMultiple, options.context);
  if (plans.prefill_columns < least) {
    fail("engine: the prefill plan takes {} columns, at least {} are needed", plans.prefill_columns,
         least);
  }
}

void check_options(const EngineOptions& options) {
  if (options.context == 0) fail("engine: a context of 0 tokens");
  if (options.max_slots == 0) fail("engine: 0 slots");
  if (options.num_pages == 0) fail("engine: 0 KV pages");
  if (options.max_pages_per_slot < pages_for(options.context)) {
    fail("engine: a context of {} tokens needs {} pages per slot, there are {}", options.context,
         pages_for(options.context), options.max_pages_per_slot);
  }
  if (options.prefill_chunk == 0 || options.prefill_chunk % kChunkMultiple != 0) {
    fail("engine: prefill chunks of {} tokens; a multiple of {} is needed", options.prefill_chunk,
         kChunkMultiple);
  }
}

SchedulerOptions scheduler_options(const ModelPlans& plans, const EngineOptions& options) {
  check_options(options);
  check_plans(plans, options);
  return {.context = options.context,
          .max_slots = options.max_slots,
          .num_pages = options.num_pages,
          .prefill_chunk = options.prefill_chunk,
          .prefill_columns = plans.prefill_columns,
          .decode_columns = plans.decode_columns,
          .shuffle_seed = options.shuffle_seed};
}

void check_tokens(const std::vector<int32_t>& tokens, const char* what, uint32_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= vocab_size) {
      fail("{} token {} is {}, outside the vocabulary of {}", what, i, tokens[i], vocab_size);
    }
  }
}

// A step that was submitted and not waited for.
struct StepInFlight {
  backend::Ticket ticket{};
  std::vector<Piece> pieces;
  std::vector<uint32_t> logit_columns;
  bool read_logits = false;
};

}  // namespace

struct Engine::State {
  State(backend::Backend& backend_in, const ModelPlans& plans_in, const EngineOptions& options_in)
      : backend(backend_in),
        plans(plans_in),
        context(options_in.context),
        steps_ahead(backend.info().steps_ahead),
        scheduler(scheduler_options(plans_in, options_in)) {}

  void submit_ahead();
  void submit(backend::PlanHandle plan, const std::vector<Piece>& pieces);
  void wait_oldest();
  void take_results(const StepInFlight& step, const backend::StepResult& result);
  void take_position(Sequence& sequence, uint32_t position, const backend::StepResult& result,
                     std::optional<size_t> row);
  void report_chunk(const Sequence& sequence, uint32_t last);
  int32_t choose(const Sequence& sequence, uint32_t position, const backend::StepResult& result,
                 size_t row) const;
  FinishReason reason_to_finish(const Sequence& sequence, uint32_t position,
                                std::optional<int32_t> token) const;
  void finish_with_error(Sequence& sequence, uint32_t position, std::string error);
  std::span<const float> logits_of(const backend::StepResult& result, size_t row) const;

  backend::Backend& backend;
  ModelPlans plans;
  uint32_t context;
  uint32_t steps_ahead;
  Scheduler scheduler;
  std::deque<StepInFlight> in_flight;
  std::vector<Event> events;
  EngineStats stats;
  uint64_t num_requests = 0;
  std::string failure;  // why the engine is unusable
};

// Fills the queue of the device. A batch that the scheduler gave is always submitted.
void Engine::State::submit_ahead() {
  while (in_flight.size() + kStepsPerBatch <= steps_ahead) {
    Batch batch = scheduler.next();
    for (Failure& failed : batch.failed) {
      Sequence& sequence = *failed.sequence;
      finish_with_error(sequence, sequence.reported, std::move(failed.error));
    }
    if (batch.empty()) return;
    for (const Piece& piece : batch.prefill) stats.prompt_tokens += piece.count;
    submit(plans.prefill, batch.prefill);
    submit(plans.decode, batch.decode);
  }
}

void Engine::State::submit(backend::PlanHandle plan, const std::vector<Piece>& pieces) {
  if (pieces.empty()) return;
  backend::Step step = make_step(pieces);
  const backend::Ticket ticket = backend.submit(plan, step);
  in_flight.push_back({ticket, pieces, std::move(step.logit_columns), step.read_logits});
  ++stats.steps;
}

void Engine::State::wait_oldest() {
  const StepInFlight step = std::move(in_flight.front());
  in_flight.pop_front();
  take_results(step, backend.wait(step.ticket));
  scheduler.collect();
}

void Engine::State::take_results(const StepInFlight& step, const backend::StepResult& result) {
  const size_t num_rows = step.logit_columns.size();
  ensure(result.tokens.size() == num_rows && result.finite.size() == num_rows,
         "backend: a step's result has not one row for each logit column");
  ensure(!step.read_logits || result.logits.size() == num_rows * plans.vocab_size,
         "backend: a step's logits have the wrong size");
  uint32_t column = 0;
  size_t row = 0;
  for (const Piece& piece : step.pieces) {
    Sequence& sequence = *piece.sequence;
    scheduler.step_done(sequence);
    const uint32_t last = piece.first + piece.count - 1;
    const bool is_news = sequence.status != SequenceStatus::finished && last >= sequence.reported;
    for (uint32_t i = 0; i < piece.count; ++i, ++column) {
      const bool has_row = row < num_rows && step.logit_columns[row] == column;
      take_position(sequence, piece.first + i, result,
                    has_row ? std::optional<size_t>(row) : std::nullopt);
      if (has_row) ++row;
    }
    if (is_news && sequence.request.prompt_progress && last < sequence.num_prompt) {
      report_chunk(sequence, last);
    }
  }
}

// Unless the position has an event for another reason.
void Engine::State::report_chunk(const Sequence& sequence, uint32_t last) {
  const bool reported = !events.empty() && events.back().request == sequence.id;
  if (!reported) events.push_back({.request = sequence.id, .position = last});
}

// Surplus columns of a finished sequence, and those of a replay, have nothing to tell.
void Engine::State::take_position(Sequence& sequence, uint32_t position,
                                  const backend::StepResult& result, std::optional<size_t> row) {
  if (sequence.status == SequenceStatus::finished || position < sequence.reported) return;
  sequence.reported = position + 1;
  Event event{.request = sequence.id, .position = position};
  if (row) {
    if (result.finite[*row] == 0) {
      finish_with_error(
          sequence, position,
          fmt::format("the logits of position {} hold a NaN or an infinity", position));
      return;
    }
    if (sequence.reports_logits(position)) {
      const auto logits = logits_of(result, *row);
      event.logits.assign(logits.begin(), logits.end());
    }
    if (sequence.chooses(position)) {
      try {
        event.token = choose(sequence, position, result, *row);
      } catch (const Error& error) {
        finish_with_error(sequence, position,
                          fmt::format("position {}: {}", position, error.what()));
        return;
      }
      sequence.tokens.push_back(*event.token);
      ++stats.generated_tokens;
    }
  }
  event.finish = reason_to_finish(sequence, position, event.token);
  if (event.finish != FinishReason::none) scheduler.finish(sequence);
  if (row || event.finish != FinishReason::none) events.push_back(std::move(event));
}

int32_t Engine::State::choose(const Sequence& sequence, uint32_t position,
                              const backend::StepResult& result, size_t row) const {
  ensure(sequence.tokens.size() == size_t{position} + 1, "engine: a token was chosen out of turn");
  const SamplingOptions& sampling = sequence.request.sampling;
  const int32_t token = sampling.needs_history()
                            ? sample(logits_of(result, row), sequence.tokens, position, sampling)
                            : result.tokens[row];
  ensure(token >= 0 && static_cast<uint32_t>(token) < plans.vocab_size,
         "backend: a chosen token lies outside the vocabulary");
  return token;
}

FinishReason Engine::State::reason_to_finish(const Sequence& sequence, uint32_t position,
                                             std::optional<int32_t> token) const {
  if (!token) {
    return position + 1 == sequence.num_columns ? FinishReason::length : FinishReason::none;
  }
  const auto& ends = sequence.request.end_tokens;
  if (std::find(ends.begin(), ends.end(), *token) != ends.end()) return FinishReason::end_token;
  if (sequence.tokens.size() - sequence.num_given == sequence.request.max_new_tokens) {
    return FinishReason::length;
  }
  return position + 1 == context ? FinishReason::context_full : FinishReason::none;
}

void Engine::State::finish_with_error(Sequence& sequence, uint32_t position, std::string error) {
  scheduler.finish(sequence);
  events.push_back({.request = sequence.id,
                    .position = position,
                    .finish = FinishReason::error,
                    .error = std::move(error)});
}

std::span<const float> Engine::State::logits_of(const backend::StepResult& result,
                                                size_t row) const {
  return std::span(result.logits).subspan(row * plans.vocab_size, plans.vocab_size);
}

Engine::Engine(backend::Backend& backend, const ModelPlans& plans, const EngineOptions& options)
    : state_(std::make_unique<State>(backend, plans, options)) {}

// Takes the results that nobody asked for any more, so that the backend's queue is empty again.
Engine::~Engine() {
  while (!state_->in_flight.empty()) {
    const backend::Ticket ticket = state_->in_flight.front().ticket;
    state_->in_flight.pop_front();
    try {
      state_->backend.wait(ticket);
    } catch (const std::exception&) {  // a failed device has nothing to give back
    }
  }
}

RequestId Engine::add(Request request) {
  State& state = *state_;
  if (!state.failure.empty()) fail("engine: unusable after an error: {}", state.failure);
  check(request.sampling);
  check_tokens(request.prompt, "prompt", state.plans.vocab_size);
  check_tokens(request.forced, "forced", state.plans.vocab_size);
  const size_t given = request.prompt.size() + request.forced.size();
  if (given == 0) fail("the prompt is empty");
  if (given > state.context) {
    fail("a prompt of {} tokens is longer than the context of {}", given, state.context);
  }
  const RequestId id{state.num_requests++};
  state.scheduler.add(id, std::move(request));
  return id;
}

void Engine::cancel(RequestId id) {
  Sequence* sequence = state_->scheduler.find(id);
  if (sequence == nullptr) return;
  state_->scheduler.finish(*sequence);
  state_->events.push_back(
      {.request = id, .position = sequence->reported, .finish = FinishReason::cancelled});
}

bool Engine::busy() const {
  if (!state_->failure.empty()) return false;
  return !state_->scheduler.empty() || !state_->in_flight.empty() || !state_->events.empty();
}

std::vector<Event> Engine::step() {
  State& state = *state_;
  if (!state.failure.empty()) fail("engine: unusable after an error: {}", state.failure);
  try {
    state.submit_ahead();
    if (!state.in_flight.empty()) {
      state.wait_oldest();
    } else {
      state.scheduler.collect();
      ensure(state.scheduler.empty() || !state.events.empty(), "engine: nothing can run");
    }
  } catch (const std::exception& error) {
    state.failure = error.what();
    throw;
  }
  return std::exchange(state.events, {});
}

EngineStats Engine::stats() const {
  EngineStats stats = state_->stats;
  stats.preemptions = state_->scheduler.num_preemptions();
  return stats;
}

}  // namespace wisp::engine
