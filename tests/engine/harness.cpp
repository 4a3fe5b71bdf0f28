#include "harness.h"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>
#include <utility>

#include "engine/pages.h"
#include "engine/random.h"

namespace wisp::engine {

namespace {

uint32_t pages_of(const RigOptions& options) {
  return options.num_pages > 0 ? options.num_pages : options.max_slots * pages_for(options.context);
}

FakeOptions fake_options(const RigOptions& options) {
  return {.vocab_size = options.vocab_size,
          .num_pages = pages_of(options),
          .max_slots = options.max_slots,
          .max_pages_per_slot = pages_for(options.context),
          .prefill_columns = options.prefill_columns,
          .decode_columns = options.decode_columns,
          .poison = options.poison,
          .fail_submit = options.fail_submit,
          .fail_wait = options.fail_wait};
}

ModelPlans plans(const RigOptions& options) {
  return {.prefill = FakeBackend::kPrefill,
          .decode = FakeBackend::kDecode,
          .prefill_columns = options.prefill_columns,
          .decode_columns = options.decode_columns,
          .vocab_size = options.vocab_size};
}

EngineOptions engine_options(const RigOptions& options) {
  return {.context = options.context,
          .max_slots = options.max_slots,
          .num_pages = pages_of(options),
          .max_pages_per_slot = pages_for(options.context),
          .prefill_chunk = options.prefill_chunk,
          .shuffle_seed = options.shuffle_seed};
}

}  // namespace

Rig::Rig(RigOptions options)
    : backend(fake_options(options)), engine(backend, plans(options), engine_options(options)) {}

void Rig::step(EventLog& log) {
  for (Event& event : engine.step()) log[event.request].push_back(std::move(event));
}

void Rig::finish(EventLog& log) {
  for (int steps = 0; engine.busy(); ++steps) {
    if (steps > 100'000) throw std::runtime_error("the engine does not come to an end");
    step(log);
  }
}

EventLog Rig::finish() {
  EventLog log;
  finish(log);
  return log;
}

std::vector<Event> expected_events(const Request& request, const RigOptions& options) {
  std::vector<int32_t> tokens = request.prompt;
  tokens.insert(tokens.end(), request.forced.begin(), request.forced.end());
  const size_t num_prompt = request.prompt.size();
  const size_t num_given = tokens.size();
  std::vector<Event> events;
  uint64_t history = 0;
  for (uint32_t position = 0; position < tokens.size(); ++position) {
    const bool in_prompt = position < num_prompt;
    history = fake_history(history, tokens[position], position, in_prompt);
    const std::vector<float> logits = fake_logits(history, options.vocab_size);
    const bool choose = request.max_new_tokens > 0 && position + 1 >= num_given;
    const bool tell = (in_prompt && request.prompt_logits) ||
                      (position + 1 >= num_prompt && request.generated_logits);
    Event event;
    event.position = position;
    if ((choose || tell) && options.poison == tokens[position]) {
      event.finish = FinishReason::error;
      event.error = fmt::format("the logits of position {} hold a NaN or an infinity", position);
      events.push_back(event);
      return events;
    }
    if (tell) event.logits = logits;
    if (choose) {
      const int32_t token = sample(logits, tokens, position, request.sampling);
      event.token = token;
      tokens.push_back(token);
      bool ends = false;
      for (const int32_t end : request.end_tokens) ends = ends || end == token;
      if (ends) {
        event.finish = FinishReason::end_token;
      } else if (tokens.size() - num_given == request.max_new_tokens) {
        event.finish = FinishReason::length;
      } else if (position + 1 == options.context) {
        event.finish = FinishReason::context_full;
      }
    } else if (request.max_new_tokens == 0 && position + 1 == num_given) {
      event.finish = FinishReason::length;
    }
    if (choose || tell || event.finish != FinishReason::none) events.push_back(event);
    if (event.finish != FinishReason::none) return events;
  }
  throw std::logic_error("a request without end");
}

std::string describe(const Event& event) {
  uint64_t hash = event.logits.size();
  for (const float logit : event.logits) hash = mix_bits(hash * 3 + std::bit_cast<uint32_t>(logit));
  return fmt::format("position {} token {} logits {:x} finish {} {}", event.position,
                     event.token ? *event.token : -1, hash, static_cast<int>(event.finish),
                     event.error);
}

std::vector<std::string> describe(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  lines.reserve(events.size());
  for (const Event& event : events) lines.push_back(describe(event));
  return lines;
}

std::vector<int32_t> random_tokens(uint64_t seed, size_t count, uint32_t vocab_size) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<int32_t>(random_bits(seed, i) % vocab_size);
  }
  return tokens;
}

}  // namespace wisp::engine
