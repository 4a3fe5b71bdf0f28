// Whatever runs beside it, wherever it lies and however often it is preempted: a request's events
// are those of the request alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/pages.h"
#include "engine/random.h"
#include "harness.h"

namespace wisp::engine {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  // From `low` to `high`, both included.
  uint32_t roll(uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(random_bits(seed_, count_++) % (high - low + 1));
  }
  bool one_in(uint32_t n) { return roll(1, n) == 1; }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

struct Planned {
  Request request;
  uint32_t arrives = 0;               // before which step
  std::optional<uint32_t> cancelled;  // likewise
};

RigOptions random_options(Dice& dice) {
  RigOptions options;
  options.vocab_size = dice.roll(2, 60);
  options.context = dice.roll(310, 500);
  options.max_slots = dice.roll(1, 8);
  const uint32_t least = pages_for(options.context);
  options.num_pages = dice.roll(least, least + 4);
  options.prefill_columns = dice.roll(64, 400);
  options.prefill_chunk = 64 * dice.roll(1, 4);
  options.decode_columns = dice.roll(1, options.max_slots);
  if (dice.one_in(4)) options.poison = static_cast<int32_t>(options.vocab_size) - 1;
  return options;
}

Request random_request(Dice& dice, const RigOptions& options) {
  const auto tokens = [&](uint32_t count) {
    return random_tokens(dice.roll(0, 1'000'000), count, options.vocab_size);
  };
  Request request;
  const uint32_t length = dice.one_in(3) ? dice.roll(1, 300) : dice.roll(1, 90);
  request.prompt = tokens(dice.one_in(6) ? 0 : length);
  if (request.prompt.empty() || dice.one_in(4)) request.forced = tokens(dice.roll(1, 10));
  request.max_new_tokens = dice.one_in(6) ? 0 : dice.roll(1, 120);
  if (dice.one_in(3)) request.end_tokens = tokens(dice.roll(1, 2));
  request.prompt_logits = dice.one_in(6);
  request.generated_logits = dice.one_in(4);
  if (dice.one_in(3)) {
    request.sampling.temperature = static_cast<float>(dice.roll(0, 3)) * 0.5F;
    request.sampling.top_k = dice.roll(0, 10);
    request.sampling.top_p = static_cast<float>(dice.roll(1, 4)) * 0.25F;
    request.sampling.repeat_penalty = dice.one_in(2) ? 1.0F : 1.3F;
    request.sampling.seed = dice.roll(0, 100);
  }
  return request;
}

EventLog run(Rig& rig, const std::vector<Planned>& planned, std::vector<RequestId>& ids) {
  EventLog log;
  ids.assign(planned.size(), RequestId{~uint64_t{0}});
  for (uint32_t now = 0; now < 200; ++now) {
    for (size_t i = 0; i < planned.size(); ++i) {
      if (planned[i].arrives == now) ids[i] = rig.engine.add(planned[i].request);
      if (planned[i].cancelled == now) rig.engine.cancel(ids[i]);
    }
    rig.step(log);
  }
  rig.finish(log);
  return log;
}

// A cancelled request told a part of what it would have told, then that it was cancelled.
void expect_events(std::vector<Event> found, std::vector<Event> expected, bool cancelled) {
  ASSERT_FALSE(found.empty());
  if (cancelled && found.back().finish == FinishReason::cancelled) {
    found.pop_back();
    ASSERT_LT(found.size(), expected.size());
    expected.resize(found.size());
  }
  EXPECT_EQ(describe(found), describe(expected));
}

TEST(Invariance, EventsAreThoseOfTheRequestAlone) {
  uint64_t preemptions = 0;
  uint64_t chained = 0;
  for (uint64_t trial = 0; trial < 150; ++trial) {
    SCOPED_TRACE(trial);
    Dice dice(trial);
    RigOptions options = random_options(dice);
    std::vector<Planned> planned(dice.roll(1, 12));
    for (Planned& one : planned) {
      one.request = random_request(dice, options);
      one.arrives = dice.one_in(2) ? 0 : dice.roll(0, 100);
      if (dice.one_in(6)) one.cancelled = one.arrives + dice.roll(0, 60);
    }
    for (const bool shuffle : {false, true}) {
      if (shuffle) options.shuffle_seed = trial;
      Rig rig(options);
      std::vector<RequestId> ids;
      EventLog log = run(rig, planned, ids);
      ASSERT_EQ(log.size(), planned.size());
      for (size_t i = 0; i < planned.size(); ++i) {
        SCOPED_TRACE(i);
        expect_events(log[ids[i]], expected_events(planned[i].request, options),
                      planned[i].cancelled.has_value());
      }
      EXPECT_EQ(rig.backend.num_in_flight(), 0U);
      preemptions += rig.engine.stats().preemptions;
      chained += rig.backend.num_chained();
      // No page and no slot is lost: a request that needs them all still runs.
      const Request last{.prompt = random_tokens(trial, options.context, options.vocab_size),
                         .prompt_logits = false};
      const RequestId id = rig.engine.add(last);
      EXPECT_EQ(describe(rig.finish()[id]), describe(expected_events(last, options)));
    }
  }
  EXPECT_GT(preemptions, 100U);
  EXPECT_GT(chained, 10'000U);
}

TEST(Invariance, ManyShufflesOfOneBatch) {
  RigOptions options;
  options.max_slots = 16;
  options.num_pages = 80;
  options.decode_columns = 8;
  std::vector<Planned> planned;
  for (const uint32_t length : {1, 15, 16, 64, 65, 127, 200, 300}) {
    Planned one;
    one.request = {.prompt = random_tokens(length, length, 32),
                   .max_new_tokens = 20 + length % 50,
                   .generated_logits = length % 2 == 0};
    one.arrives = length % 30;
    planned.push_back(one);
  }
  for (uint64_t i = 0; i < 24; ++i) {
    planned.push_back({{.prompt = random_tokens(500 + i, 30, 32), .max_new_tokens = 40}, 0, {}});
  }
  for (uint64_t seed = 0; seed < 10; ++seed) {
    options.shuffle_seed = seed;
    Rig rig(options);
    std::vector<RequestId> ids;
    EventLog log = run(rig, planned, ids);
    for (size_t i = 0; i < planned.size(); ++i) {
      expect_events(log[ids[i]], expected_events(planned[i].request, options), false);
    }
  }
}

}  // namespace
}  // namespace wisp::engine
