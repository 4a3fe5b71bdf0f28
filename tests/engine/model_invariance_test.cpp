// A request's tokens and logits are the same bits whatever runs beside it, wherever its slot and
// pages are.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "model_runs.h"

namespace wisp::engine {
namespace {

using Param = std::tuple<std::string, backend::Choice>;

class InvarianceTest : public testing::TestWithParam<Param> {};

std::vector<Request> mixed_requests(size_t count, uint32_t vocab, uint32_t max_prompt) {
  std::mt19937 random(7);
  std::vector<Request> requests;
  for (size_t i = 0; i < count; ++i) {
    Request request{.max_new_tokens = 1 + static_cast<uint32_t>(random() % 12),
                    .generated_logits = i % 4 != 1};
    if (i % 2 == 1) {
      request.sampling = {.temperature = 0.8F, .min_p = 0.01F, .seed = i};
      if (i % 3 != 0) request.sampling.top_k = 30;
      if (i % 5 != 0) request.sampling.top_p = 0.95F;
    }
    const uint32_t length = i == 0 ? 1 : 1 + static_cast<uint32_t>(random() % max_prompt);
    for (uint32_t t = 0; t < length; ++t)
      request.prompt.push_back(static_cast<int32_t>(random() % vocab));
    requests.push_back(std::move(request));
  }
  return requests;
}

uint32_t context_of(const Golden& golden) { return std::min(384U, golden.max_positions); }

LoadedModel load(const Golden& golden, backend::Choice backend, uint32_t slots,
                 std::optional<uint64_t> seed) {
  return LoadedModel({.model = golden.model,
                      .device = {.choice = backend},
                      .context = context_of(golden),
                      .max_slots = slots,
                      .prefill_chunk = 128,
                      .shuffle_seed = seed});
}

void expect_equal(const Output& a, const Output& b, const std::string& what) {
  EXPECT_EQ(a.error, "") << what;
  EXPECT_EQ(a.tokens, b.tokens) << what;
  EXPECT_EQ(a.logits, b.logits) << what;
}

TEST_P(InvarianceTest, AloneAndAmongOthers) {
  const auto [name, backend] = GetParam();
  const Golden golden = load_golden(name);
  const uint32_t max_prompt = context_of(golden) - 14;  // and the tokens that follow
  const std::vector<Request> requests =
      mixed_requests(8, static_cast<uint32_t>(golden.vocab), std::min(300U, max_prompt));
  std::vector<Output> alone;
  {
    LoadedModel model = load(golden, backend, 1, {});
    for (const Request& request : requests) {
      alone.push_back(run_all(*model.make_engine(), {request})[0]);
      EXPECT_EQ(alone.back().tokens.size(), request.max_new_tokens);
    }
  }
  for (const uint64_t seed : {1, 2, 3}) {
    LoadedModel model = load(golden, backend, 5, seed);
    const std::vector<uint32_t> delays = {0, 0, 1, 2, 3, 3, 5, 8};
    const std::vector<Output> together = run_all(*model.make_engine(), requests, delays);
    for (size_t i = 0; i < requests.size(); ++i) {
      expect_equal(together[i], alone[i],
                   "seed " + std::to_string(seed) + " request " + std::to_string(i));
    }
  }
}

// Nor do they depend on the room that was made. Tables are made before a backend sees them: the CPU
// speaks for all.
class ContextTest : public testing::TestWithParam<std::string> {};

TEST_P(ContextTest, GivesTheSame) {
  const Golden golden = load_golden(GetParam());
  const Request request{.prompt = {golden.tokens.begin(), golden.tokens.begin() + 5},
                        .max_new_tokens = 3,
                        .generated_logits = true};
  const backend::Choice cpu = backend::Choice::cpu;
  LoadedModel narrow({.model = golden.model, .device = {.choice = cpu}, .context = 8});
  LoadedModel wide = load(golden, cpu, 1, {});
  expect_equal(run_all(*narrow.make_engine(), {request})[0],
               run_all(*wide.make_engine(), {request})[0], "context 8");
}

// The host chooses where the penalty may look back, even at no token; else the backend does.
TEST_P(InvarianceTest, SampledByTheBackendAsByTheHost) {
  const auto [name, backend] = GetParam();
  const Golden golden = load_golden(name);
  LoadedModel model = load(golden, backend, 2, {});
  for (const uint64_t seed : {1, 2, 3}) {
    Request request{.prompt = {golden.tokens.begin(), golden.tokens.begin() + 5},
                    .max_new_tokens = 20,
                    .sampling = {.temperature = 1.5F, .top_k = 100, .top_p = 0.98F, .seed = seed}};
    const Output by_backend = run_all(*model.make_engine(), {request})[0];
    expect_equal(run_all(*model.make_engine(), {request})[0], by_backend, "again");
    request.sampling.repeat_penalty = 2.0F;
    request.sampling.repeat_last_n = 0;
    expect_equal(run_all(*model.make_engine(), {request})[0], by_backend, "by the host");
    EXPECT_EQ(by_backend.tokens.size(), 20U);
  }
}

class WideBatchTest : public testing::TestWithParam<backend::Choice> {};

TEST_P(WideBatchTest, AmongSixtyThreeOthers) {
  const backend::Choice backend = GetParam();
  const Golden golden = load_golden("llama");
  const std::vector<Request> requests = mixed_requests(64, static_cast<uint32_t>(golden.vocab), 40);
  LoadedModel wide = load(golden, backend, 64, 11);
  const std::vector<Output> together = run_all(*wide.make_engine(), requests);
  LoadedModel narrow = load(golden, backend, 1, {});
  for (size_t i = 0; i < requests.size(); i += 7) {
    expect_equal(together[i], run_all(*narrow.make_engine(), {requests[i]})[0], std::to_string(i));
  }
}

std::string test_name(const testing::TestParamInfo<Param>& info) {
  const auto [name, backend] = info.param;
  return name + (backend == backend::Choice::cpu ? "_cpu" : "_webgpu");
}

INSTANTIATE_TEST_SUITE_P(Cpu, InvarianceTest,
                         testing::Combine(testing::ValuesIn(golden_names()),
                                          testing::Values(backend::Choice::cpu)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(WebGpu, InvarianceTest,
                         testing::Combine(testing::ValuesIn(plain_names()),
                                          testing::Values(backend::Choice::webgpu)),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Cpu, ContextTest, testing::ValuesIn(golden_names()),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Backends, WideBatchTest,
                         testing::Values(backend::Choice::cpu, backend::Choice::webgpu),
                         [](const auto& info) {
                           return info.param == backend::Choice::cpu ? "cpu" : "webgpu";
                         });

}  // namespace
}  // namespace wisp::engine
