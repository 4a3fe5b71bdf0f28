// What sequences keep beside KV pages: whole models go back to a snapshot, or on from one in
// another slot, or start anew after preemption, with the bits of a run without.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "model_runs.h"

namespace wisp::engine {
namespace {

constexpr uint32_t kPages = 8;     // of a slot
constexpr uint32_t kSnapshot = 2;  // rows of states behind two slots
constexpr uint32_t kFork = 64;     // where prompts may be cut, and pages end

// A model on a backend without an engine: slots 0 and 1, with pages of their own from 0 and 8 on,
// and pages from 16 on that none has.
class Runner {
 public:
  Runner(const Golden& golden, backend::Choice choice)
      : checkpoint_(formats::Checkpoint::open(golden.model)),
        model_(model::load_model(checkpoint_, {.context = 128})),
        backend_(backend::create({.choice = choice})) {
    backend_->load({.resources = model_.resources,
                    .weights = model_.weights.parts,
                    .num_pages = 3 * kPages,
                    .max_slots = 2,
                    .max_pages_per_slot = kPages,
                    .num_states = 4});
    prefill_ = prepare(plan::KernelClass::prefill);
    decode_ = prepare(plan::KernelClass::decode);
    for (const uint32_t slot : {0, 1}) map_pages(slot, 0, slot * kPages);
  }

  // The slot's pages from `first` on.
  void map_pages(uint32_t slot, uint32_t first, uint32_t page) {
    backend::TableUpdate update{slot, first, {}};
    for (uint32_t i = first; i < kPages; ++i) update.pages.push_back(page++);
    updates_.push_back(std::move(update));
  }

  // What the next step copies before it runs.
  void copy(uint32_t from, uint32_t to) { copies_.push_back({from, to}); }

  // Prompt tokens from `position` on; the logits of the last one.
  std::vector<float> read(uint32_t slot, uint32_t position, std::span<const int32_t> tokens) {
    return run(prefill_, slot, position, tokens);
  }
  // Generated tokens, one a step; the logits of all.
  std::vector<float> decode(uint32_t slot, uint32_t position, std::span<const int32_t> tokens) {
    std::vector<float> all;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto at = position + static_cast<uint32_t>(i);
      const std::vector<float> logits = run(decode_, slot, at, tokens.subspan(i, 1));
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

 private:
  backend::PlanHandle prepare(plan::KernelClass kernel_class) {
    return backend_->prepare(model::build_plan(
        model_, {.kernel_class = kernel_class, .max_columns = 128, .max_logits = 1}));
  }

  std::vector<float> run(backend::PlanHandle plan, uint32_t slot, uint32_t position,
                         std::span<const int32_t> tokens) {
    backend::Step step;
    for (const int32_t token : tokens) step.columns.push_back({token, position++, slot});
    step.logit_columns = {static_cast<uint32_t>(tokens.size()) - 1};
    step.read_logits = true;
    step.table_updates = std::exchange(updates_, {});
    step.state_copies = std::exchange(copies_, {});
    return backend_->wait(backend_->submit(plan, step)).logits;
  }

  formats::Checkpoint checkpoint_;
  model::Model model_;
  std::unique_ptr<backend::Backend> backend_;
  backend::PlanHandle prefill_{};
  backend::PlanHandle decode_{};
  std::vector<backend::TableUpdate> updates_;
  std::vector<backend::StateCopy> copies_;
};

using Param = std::tuple<std::string, backend::Choice>;

class StatesTest : public testing::TestWithParam<Param> {};

TEST_P(StatesTest, SnapshotsAndForks) {
  const auto [name, choice] = GetParam();
  Runner runner(load_golden(name), choice);
  std::vector<int32_t> tokens;
  tokens.reserve(90);
  for (int32_t i = 0; i < 90; ++i) tokens.push_back(3 + i * 7 % 250);
  const std::span<const int32_t> all(tokens);
  const auto head = all.first(kFork);
  const auto tail = all.subspan(kFork, 16);
  const auto next = all.subspan(kFork + 16, 6);
  const std::vector<int32_t> others = {5, 9, 11};

  // Without copies, whole.
  const std::vector<float> prompt = runner.read(0, 0, all.first(kFork + 16));
  const std::vector<float> generated = runner.decode(0, kFork + 16, next);

  // In pieces; after two generated tokens a snapshot, three other tokens, and back.
  runner.read(1, 0, head);
  EXPECT_EQ(runner.read(1, kFork, tail), prompt) << "in pieces";
  const size_t row = generated.size() / next.size();
  runner.decode(1, kFork + 16, next.first(2));
  runner.copy(1, kSnapshot);
  runner.decode(1, kFork + 18, others);
  runner.copy(kSnapshot, 1);
  const std::vector<float> again = runner.decode(1, kFork + 18, next.subspan(2));
  const auto from = generated.begin() + static_cast<ptrdiff_t>(2 * row);
  EXPECT_EQ(again, std::vector<float>(from, generated.end())) << "after a snapshot";

  // A fork at a multiple of 64, which shares the pages before it, and the slot that it came from.
  runner.read(0, 0, head);
  runner.map_pages(1, 0, 0);
  runner.map_pages(1, kFork / plan::kPageTokens, 2 * kPages);
  runner.copy(0, 1);
  EXPECT_EQ(runner.read(1, kFork, tail), prompt) << "in a fork";
  EXPECT_EQ(runner.decode(1, kFork + 16, next), generated) << "in a fork";
  EXPECT_EQ(runner.read(0, kFork, tail), prompt) << "beside a fork";
}

// Another sequence in a slot finds nothing of the one before.
TEST_P(StatesTest, StartEmpty) {
  const auto [name, choice] = GetParam();
  Runner runner(load_golden(name), choice);
  const std::vector<int32_t> first = {7, 8, 9, 10, 11};
  const std::vector<int32_t> second = {20, 21, 22};
  const std::vector<float> expected = runner.read(1, 0, second);
  const std::vector<float> decoded = runner.decode(0, 0, second);
  runner.read(0, 0, first);
  EXPECT_EQ(runner.read(0, 0, second), expected);
  runner.read(0, 0, first);
  EXPECT_EQ(runner.decode(0, 0, second), decoded);
}

class PreemptionTest : public testing::TestWithParam<Param> {};

// With pages for two of three sequences some lose theirs and are rebuilt.
TEST_P(PreemptionTest, GivesTheSame) {
  const auto [name, choice] = GetParam();
  const Golden golden = load_golden(name);
  const backend::CreateOptions device = {.choice = choice};
  const auto load_with = [&](uint32_t slots, uint32_t pages) {
    return LoadedModel({.model = golden.model,
                        .device = device,
                        .context = 32,
                        .max_slots = slots,
                        .num_pages = pages});
  };
  std::vector<Request> requests;
  for (const int32_t first : {3, 4, 5}) {
    requests.push_back({.prompt = std::vector<int32_t>(14, first),
                        .max_new_tokens = 12,
                        .generated_logits = true});
  }
  LoadedModel scarce = load_with(3, 4);
  const auto engine = scarce.make_engine();
  const std::vector<Output> together = run_all(*engine, requests);
  EXPECT_GT(engine->stats().preemptions, 0U);
  LoadedModel plenty = load_with(1, 2);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Output alone = run_all(*plenty.make_engine(), {requests[i]})[0];
    EXPECT_EQ(together[i].error, "");
    EXPECT_EQ(together[i].tokens, alone.tokens) << i;
    EXPECT_EQ(together[i].logits, alone.logits) << i;
  }
}

std::vector<std::string> names_with_states(bool gpu) {
  std::vector<std::string> names;
  for (const std::string& name : golden_names(gpu)) {
    const Golden golden = load_golden(name);
    const auto checkpoint = formats::Checkpoint::open(golden.model);
    if (!model::state_layers(model::read_config(checkpoint)).empty()) names.push_back(name);
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<Param>& info) { return std::get<0>(info.param); }

INSTANTIATE_TEST_SUITE_P(Cpu, StatesTest,
                         testing::Combine(testing::ValuesIn(names_with_states(false)),
                                          testing::Values(backend::Choice::cpu)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(WebGpu, StatesTest,
                         testing::Combine(testing::ValuesIn(names_with_states(true)),
                                          testing::Values(backend::Choice::webgpu)),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Cpu, PreemptionTest,
                         testing::Combine(testing::ValuesIn(golden_names()),
                                          testing::Values(backend::Choice::cpu)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(WebGpu, PreemptionTest,
                         testing::Combine(testing::ValuesIn(names_with_states(true)),
                                          testing::Values(backend::Choice::webgpu)),
                         test_name);

}  // namespace
}  // namespace wisp::engine
