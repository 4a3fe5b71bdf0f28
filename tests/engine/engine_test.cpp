#include "engine/engine.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "harness.h"

namespace wisp::engine {
namespace {

template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Runs one request alone and compares it with its definition.
void expect_as_defined(const Request& request, const RigOptions& options) {
  Rig rig(options);
  const RequestId id = rig.engine.add(request);
  EventLog log = rig.finish();
  EXPECT_EQ(describe(log[id]), describe(expected_events(request, options)));
  EXPECT_EQ(rig.backend.num_in_flight(), 0U);
}

TEST(Engine, GreedyTokensFollowThePrompt) {
  const RigOptions options;
  for (const size_t length : {1, 15, 16, 17, 63, 64, 65, 128, 129, 300}) {
    expect_as_defined({.prompt = random_tokens(length, length, 32), .max_new_tokens = 40}, options);
  }
}

TEST(Engine, OneTokenIsChosenByThePromptAlone) {
  Rig rig({});
  const RequestId id = rig.engine.add({.prompt = {1, 2, 3}, .max_new_tokens = 1});
  EventLog log = rig.finish();
  ASSERT_EQ(log[id].size(), 1U);
  EXPECT_EQ(log[id][0].position, 2U);
  EXPECT_TRUE(log[id][0].token.has_value());
  EXPECT_EQ(log[id][0].finish, FinishReason::length);
  EXPECT_EQ(rig.backend.num_steps(), 1U);
}

TEST(Engine, APromptAloneEndsWithItsLastPosition) {
  Rig rig({});
  const RequestId id = rig.engine.add({.prompt = random_tokens(1, 150, 32)});
  EventLog log = rig.finish();
  ASSERT_EQ(log[id].size(), 1U);
  EXPECT_EQ(log[id][0].position, 149U);
  EXPECT_FALSE(log[id][0].token.has_value());
  EXPECT_EQ(log[id][0].finish, FinishReason::length);
}

// `wisp logits`: every position, through either class.
TEST(Engine, LogitsOfEveryPosition) {
  const RigOptions options;
  const auto tokens = random_tokens(3, 200, 32);
  const Request prefill{.prompt = tokens, .prompt_logits = true};
  const Request decode{.forced = tokens, .generated_logits = true};
  for (const Request& request : {prefill, decode}) {
    EXPECT_EQ(expected_events(request, options).size(), 200U);
    expect_as_defined(request, options);
  }
}

TEST(Engine, LogitsOfALongPromptAreReadStepByStep) {
  Rig rig({});
  const RequestId id = rig.engine.add({.prompt = random_tokens(3, 390, 32), .prompt_logits = true});
  EXPECT_EQ(rig.finish()[id].size(), 390U);
  EXPECT_EQ(rig.backend.num_steps(), 4U);
  EXPECT_EQ(rig.backend.max_in_flight(), 1U);
}

// `wisp generate --logits`: the rows that chose the tokens.
TEST(Engine, GeneratedLogitsAreThoseThatChoseTheTokens) {
  const RigOptions options;
  const Request request{
      .prompt = random_tokens(4, 70, 32), .max_new_tokens = 9, .generated_logits = true};
  Rig rig(options);
  const RequestId id = rig.engine.add(request);
  EventLog log = rig.finish();
  ASSERT_EQ(log[id].size(), 9U);
  for (uint32_t i = 0; i < 9; ++i) {
    EXPECT_EQ(log[id][i].position, 69 + i);
    EXPECT_EQ(log[id][i].token, fake_argmax(log[id][i].logits));
  }
  EXPECT_EQ(describe(log[id]), describe(expected_events(request, options)));
}

TEST(Engine, ForcedTokensRunAsIfGenerated) {
  const RigOptions options;
  expect_as_defined({.prompt = random_tokens(5, 80, 32),
                     .forced = random_tokens(6, 30, 32),
                     .max_new_tokens = 10,
                     .prompt_logits = true,
                     .generated_logits = true},
                    options);
  expect_as_defined({.forced = {3}, .max_new_tokens = 5}, options);
}

TEST(Engine, EndTokensEndAndAreReported) {
  const RigOptions options;
  const Request open{.prompt = {5, 6, 7}, .max_new_tokens = 30};
  Request request = open;
  request.end_tokens = {*expected_events(open, options)[11].token};
  const auto expected = expected_events(request, options);
  EXPECT_EQ(expected.back().finish, FinishReason::end_token);
  EXPECT_LE(expected.size(), 12U);
  expect_as_defined(request, options);
}

TEST(Engine, TheContextFillsUp) {
  RigOptions options;
  options.context = 100;
  const Request request{.prompt = random_tokens(8, 90, 32), .max_new_tokens = 50};
  const auto expected = expected_events(request, options);
  EXPECT_EQ(expected.size(), 11U);  // positions 89..99
  EXPECT_EQ(expected.back().finish, FinishReason::context_full);
  expect_as_defined(request, options);
  const Request full{.prompt = random_tokens(9, 100, 32), .max_new_tokens = 2};
  EXPECT_EQ(expected_events(full, options).size(), 1U);
  expect_as_defined(full, options);
}

TEST(Engine, SampledTokensDependOnTheSeed) {
  const RigOptions options;
  Request request{.prompt = random_tokens(10, 20, 32), .max_new_tokens = 30};
  request.sampling = {.temperature = 0.8F, .top_k = 8, .top_p = 0.9F, .seed = 1};
  expect_as_defined(request, options);
  const auto first = describe(expected_events(request, options));
  request.sampling.seed = 2;
  expect_as_defined(request, options);
  EXPECT_NE(describe(expected_events(request, options)), first);
}

TEST(Engine, GreedyAndSampledSequencesRunAheadOnTheDevice) {
  for (const float temperature : {0.0F, 0.8F}) {
    Rig rig({});
    rig.engine.add(
        {.prompt = {1, 2}, .max_new_tokens = 50, .sampling = {.temperature = temperature}});
    EventLog log = rig.finish();
    EXPECT_EQ(rig.backend.num_steps(), 50U);  // no surplus: the length is known
    EXPECT_GE(rig.backend.max_in_flight(), 3U);
    EXPECT_EQ(rig.backend.num_chained(), 49U);
    for (const auto& shape : rig.backend.shapes()) EXPECT_FALSE(shape.read_logits);
  }
}

TEST(Engine, PenalizedSequencesWaitForTheHost) {
  Rig rig({});
  rig.engine.add({.prompt = {1, 2},
                  .max_new_tokens = 20,
                  .sampling = {.temperature = 1.0F, .repeat_penalty = 1.1F, .seed = 3}});
  rig.engine.add({.prompt = {3, 4}, .max_new_tokens = 20});
  rig.finish();
  EXPECT_EQ(rig.backend.num_chained(), 0U);
  EXPECT_EQ(rig.backend.num_steps(), 20U);  // both in every step, none thinner than it need be
}

TEST(Engine, ANonFiniteRowEndsItsRequestOnly) {
  RigOptions options;
  options.poison = 31;
  Request bad{.prompt = random_tokens(11, 40, 31), .max_new_tokens = 5};
  bad.prompt.back() = 31;
  Request good{.prompt = random_tokens(12, 40, 31), .max_new_tokens = 5};
  Rig rig(options);
  const RequestId bad_id = rig.engine.add(bad);
  const RequestId good_id = rig.engine.add(good);
  EventLog log = rig.finish();
  ASSERT_EQ(log[bad_id].size(), 1U);
  EXPECT_EQ(log[bad_id][0].finish, FinishReason::error);
  EXPECT_EQ(log[bad_id][0].error, "the logits of position 39 hold a NaN or an infinity");
  EXPECT_EQ(describe(log[good_id]), describe(expected_events(good, options)));
}

TEST(Engine, ARequestThatNeverFitsIsAnErrorEvent) {
  RigOptions options;
  options.num_pages = 4;
  Rig rig(options);
  const RequestId large = rig.engine.add({.prompt = random_tokens(1, 65, 32)});
  const RequestId grows =
      rig.engine.add({.prompt = random_tokens(2, 50, 32), .max_new_tokens = 100});
  const Request small_request{.prompt = {1, 2, 3}, .max_new_tokens = 4};
  const RequestId small = rig.engine.add(small_request);
  EventLog log = rig.finish();
  ASSERT_EQ(log[large].size(), 1U);
  EXPECT_EQ(log[large][0].error, "65 tokens need 5 KV pages, there are 4 in all");
  EXPECT_EQ(log[grows].back().finish, FinishReason::error);
  EXPECT_EQ(log[grows].back().error, "position 64 needs KV page 5, there are 4 in all");
  EXPECT_EQ(log[grows].back().position, 64U);
  EXPECT_EQ(log[grows].size(), 16U);  // positions 49..63 and the error
  EXPECT_EQ(describe(log[small]), describe(expected_events(small_request, options)));
}

TEST(Engine, PreemptedSequencesSayNothingTwice) {
  RigOptions options;
  options.max_slots = 3;
  options.num_pages = 12;
  Rig rig(options);
  std::vector<Request> requests;
  std::vector<RequestId> ids;
  for (uint64_t i = 0; i < 3; ++i) {
    requests.push_back({.prompt = random_tokens(20 + i, 40, 32),
                        .forced = random_tokens(30 + i, 10, 32),
                        .max_new_tokens = 100,
                        .generated_logits = i == 1});
    ids.push_back(rig.engine.add(requests.back()));
  }
  EventLog log = rig.finish();
  EXPECT_GT(rig.engine.stats().preemptions, 0U);
  size_t num_events = 0;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(describe(log[ids[i]]), describe(expected_events(requests[i], options)));
    num_events += log[ids[i]].size();
  }
  size_t num_rows = 0;
  for (const auto& shape : rig.backend.shapes()) num_rows += shape.logit_rows;
  EXPECT_EQ(num_rows, num_events);  // a replay computes no logits again
}

TEST(Engine, CancelEndsWithOneEvent) {
  Rig rig({});
  EventLog log;
  const RequestId running = rig.engine.add({.prompt = {1, 2}, .max_new_tokens = 100});
  for (int i = 0; i < 5; ++i) rig.step(log);
  const RequestId queued = rig.engine.add({.prompt = {3}, .max_new_tokens = 5});
  rig.engine.cancel(running);
  rig.engine.cancel(running);
  rig.engine.cancel(queued);
  rig.engine.cancel(RequestId{77});
  rig.finish(log);
  EXPECT_EQ(log[running].size(), 6U);
  EXPECT_EQ(log[running].back().finish, FinishReason::cancelled);
  EXPECT_EQ(log[running].back().position, log[running][4].position + 1);
  ASSERT_EQ(log[queued].size(), 1U);
  EXPECT_EQ(log[queued][0].finish, FinishReason::cancelled);
  rig.engine.cancel(running);
  EXPECT_FALSE(rig.engine.busy());
  EXPECT_EQ(rig.backend.num_in_flight(), 0U);
}

TEST(Engine, AFailedDeviceMakesItUnusable) {
  for (const bool in_submit : {false, true}) {
    RigOptions options;
    (in_submit ? options.fail_submit : options.fail_wait) = 4;
    Rig rig(options);
    rig.engine.add({.prompt = {1, 2}, .max_new_tokens = 100});
    const std::string want =
        in_submit ? "fake: device lost in submit" : "fake: device lost in wait";
    EXPECT_EQ(error_of([&] { rig.finish(); }), want);
    EXPECT_FALSE(rig.engine.busy());
    EXPECT_EQ(error_of([&] { rig.engine.step(); }), "engine: unusable after an error: " + want);
    EXPECT_EQ(error_of([&] { rig.engine.add({.prompt = {1}}); }),
              "engine: unusable after an error: " + want);
  }
}

TEST(Engine, ADestroyedEngineLeavesNothingInFlight) {
  FakeBackend backend({.num_pages = 4, .max_slots = 1, .max_pages_per_slot = 4});
  const ModelPlans plans{
      .prefill = FakeBackend::kPrefill, .decode = FakeBackend::kDecode, .vocab_size = 32};
  {
    Engine engine(backend, plans,
                  {.context = 64, .max_slots = 1, .num_pages = 4, .max_pages_per_slot = 4});
    engine.add({.prompt = {1}, .max_new_tokens = 20});
    engine.step();
    EXPECT_GT(backend.num_in_flight(), 0U);
  }
  EXPECT_EQ(backend.num_in_flight(), 0U);
}

TEST(Engine, AddNamesWhatIsWrong) {
  Rig rig({});
  EXPECT_EQ(error_of([&] { rig.engine.add({}); }), "the prompt is empty");
  EXPECT_EQ(error_of([&] {
              rig.engine.add({.prompt = {1, 32}});
            }),
            "prompt token 1 is 32, outside the vocabulary of 32");
  EXPECT_EQ(error_of([&] { rig.engine.add({.prompt = {1}, .forced = {-1}}); }),
            "forced token 0 is -1, outside the vocabulary of 32");
  EXPECT_EQ(error_of([&] { rig.engine.add({.prompt = random_tokens(1, 401, 32)}); }),
            "a prompt of 401 tokens is longer than the context of 400");
  EXPECT_EQ(error_of([&] { rig.engine.add({.prompt = {1}, .sampling = {.top_p = 2.0F}}); }),
            "top-p is 2, it must be from 0 to 1");
  EXPECT_FALSE(rig.engine.busy());
}

TEST(Engine, OptionsMustFitTogether) {
  FakeBackend backend({.num_pages = 8, .max_slots = 2, .max_pages_per_slot = 8});
  const ModelPlans plans{.vocab_size = 32};
  const EngineOptions good{.context = 128, .max_slots = 2, .num_pages = 8, .max_pages_per_slot = 8};
  const auto error_with = [&](auto change) {
    ModelPlans changed_plans = plans;
    EngineOptions changed = good;
    change(changed_plans, changed);
    return error_of([&] { Engine engine(backend, changed_plans, changed); });
  };
  EXPECT_EQ(error_with([](auto&, auto&) {}), "no error");
  EXPECT_EQ(error_with([](auto&, auto& o) { o.context = 0; }), "engine: a context of 0 tokens");
  EXPECT_EQ(error_with([](auto&, auto& o) { o.max_slots = 0; }), "engine: 0 slots");
  EXPECT_EQ(error_with([](auto&, auto& o) { o.num_pages = 0; }), "engine: 0 KV pages");
  EXPECT_EQ(error_with([](auto&, auto& o) { o.max_pages_per_slot = 7; }),
            "engine: a context of 128 tokens needs 8 pages per slot, there are 7");
  EXPECT_EQ(error_with([](auto&, auto& o) { o.prefill_chunk = 100; }),
            "engine: prefill chunks of 100 tokens; a multiple of 64 is needed");
  EXPECT_EQ(error_with([](auto& p, auto&) { p.prefill_columns = 63; }),
            "engine: the prefill plan takes 63 columns, at least 64 are needed");
  EXPECT_EQ(error_with([](auto& p, auto&) { p.decode_columns = 0; }),
            "engine: a decode plan of 0 columns");
  EXPECT_EQ(error_with([](auto& p, auto&) { p.vocab_size = 0; }),
            "engine: the vocabulary is empty");
}

}  // namespace
}  // namespace wisp::engine
