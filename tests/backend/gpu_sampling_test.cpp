// Sampled rows on the GPU: the tokens are exactly those of the CPU backend, whatever the numbers
// are; their frequencies; and a greedy step does not pay for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/cpu/backend.h"
#include "backend/selftest/op_case.h"
#include "backend/selftest/reference_sample.h"
#include "chi_square.h"
#include "gpu_context.h"

namespace wisp::backend::selftest {
namespace {

std::unique_ptr<Backend> gpu_backend() { return make_gpu_backend({.context = shared_context()}); }

// Steps of rows of logits as they are.
class Rows {
 public:
  Rows(uint32_t vocab, uint32_t rows)
      : vocab_(vocab),
        builder_("rows", plan::KernelClass::decode,
                 {.max_columns = rows, .max_logits = rows, .max_positions = 64 * rows}) {
    builder_.result().resources.vocab_size = vocab;
    x_ = builder_.input("x", vocab);
    const plan::ValueId logits = builder_.value("logits", vocab, plan::Rows::logits);
    builder_.op(plan::SelectLogits{.x = x_, .out = logits});
    builder_.op(plan::Sample{.logits = logits});
  }

  Random& random() { return builder_.random(); }
  const OpCase& op_case() { return builder_.result(); }

  void step(const std::vector<float>& logits, std::vector<RowSampling> sampling) {
    const auto rows = static_cast<uint32_t>(logits.size() / vocab_);
    std::vector<uint32_t> columns(rows);
    std::iota(columns.begin(), columns.end(), 0U);
    builder_.step(builder_.next_columns(0, rows), columns);
    builder_.set_input(x_, logits);
    builder_.set_sampling(std::move(sampling));
  }

 private:
  uint32_t vocab_;
  CaseBuilder builder_;
  plan::ValueId x_{};
};

std::vector<int32_t> tokens_of(const CaseRun& run) {
  std::vector<int32_t> tokens;
  for (const StepRun& step : run) {
    tokens.insert(tokens.end(), step.result.tokens.begin(), step.result.tokens.end());
  }
  return tokens;
}

RowSampling random_sampling(Random& random, uint32_t vocab) {
  RowSampling sampling{.temperature = std::ldexp(static_cast<float>(random() % 64) / 64.0F,
                                                 static_cast<int>(random() % 8) - 3)};
  if (random() % 2 == 0) sampling.top_k = 1 + random() % (random() % 2 == 0 ? 50 : vocab + 3);
  if (random() % 2 == 0) sampling.top_p = static_cast<float>(random() % 4096) / 4096.0F;
  if (random() % 3 == 0) sampling.min_p = static_cast<float>(random() % 100) / 100.0F;
  sampling.random = static_cast<uint32_t>(random());
  return sampling;
}

// Logits of many magnitudes; every third row in steps, so with many ties.
TEST(GpuSampling, TokensAreThoseOfTheCpu) {
  for (const uint32_t vocab : {3U, 257U, 2049U, 40'003U}) {
    const uint32_t rows = 24;
    Rows steps(vocab, rows);
    for (int step = 0; step < 4; ++step) {
      std::vector<float> logits;
      std::vector<RowSampling> sampling;
      for (uint32_t r = 0; r < rows; ++r) {
        const float magnitude = std::ldexp(1.0F, static_cast<int>(steps.random()() % 9) - 3);
        std::vector<float> row = random_floats(steps.random(), vocab, magnitude);
        if (r % 3 == 0) {
          for (float& logit : row) logit = std::round(logit * 2.0F) / 2.0F;
        }
        logits.insert(logits.end(), row.begin(), row.end());
        sampling.push_back(random_sampling(steps.random(), vocab));
      }
      steps.step(logits, std::move(sampling));
    }
    const auto cpu = make_cpu_backend(1);
    const auto gpu = gpu_backend();
    EXPECT_EQ(tokens_of(run_case(*gpu, steps.op_case())),
              tokens_of(run_case(*cpu, steps.op_case())))
        << vocab;
  }
}

TEST(GpuSampling, FrequenciesFollowTheProbabilities) {
  const uint32_t vocab = 60;
  const uint32_t rows = 64;
  for (const RowSampling& way : {RowSampling{.temperature = 1.2F},
                                 RowSampling{.temperature = 0.9F, .top_k = 30, .top_p = 0.9F}}) {
    Rows steps(vocab, rows);
    const std::vector<float> row = random_floats(steps.random(), vocab, 3.0F);
    std::vector<float> logits;
    for (uint32_t r = 0; r < rows; ++r) logits.insert(logits.end(), row.begin(), row.end());
    for (int step = 0; step < 60; ++step) {
      std::vector<RowSampling> sampling(rows, way);
      for (RowSampling& one : sampling) one.random = static_cast<uint32_t>(steps.random()());
      steps.step(logits, std::move(sampling));
    }
    std::vector<uint32_t> counts(vocab, 0);
    const auto gpu = gpu_backend();
    for (const int32_t token : tokens_of(run_case(*gpu, steps.op_case()))) {
      ++counts[static_cast<size_t>(token)];
    }
    EXPECT_EQ(chi_square_fault(counts, sample_probabilities({row.begin(), row.end()}, way)), "");
  }
}

// Dispatches of the op "op.1".
uint64_t sample_dispatches(const Profile& profile) {
  const auto row = std::ranges::find(profile.ops, "op.1", &ProfileRow::name);
  return row == profile.ops.end() ? 0 : row->count;
}

TEST(GpuSampling, StepsPayForWhatTheirRowsNeed) {
  const uint32_t vocab = 9000;
  const RowSampling greedy;
  const RowSampling drawn{.temperature = 1.0F};
  const RowSampling cut{.temperature = 1.0F, .top_p = 0.9F};
  const RowSampling both{.temperature = 1.0F, .top_k = 9, .top_p = 0.9F};
  const std::vector<std::pair<std::vector<RowSampling>, uint64_t>> cases = {
      {{}, 2},                        // the best of chunks and of rows
      {{greedy, greedy, greedy}, 2},  //
      {{greedy, drawn, greedy}, 4},   // masses and draw
      {{cut, greedy, drawn}, 8},      // four digits
      {{greedy, cut, both}, 11},      // three more
  };
  for (const auto& [sampling, dispatches] : cases) {
    Rows steps(vocab, 3);
    steps.step(random_floats(steps.random(), size_t{3} * vocab), sampling);
    const auto gpu = gpu_backend();
    gpu->set_profiling(true);
    run_case(*gpu, steps.op_case());
    EXPECT_EQ(sample_dispatches(gpu->take_profile()), dispatches);
  }
}

TEST(GpuSampling, RefusesRowsThatAreNotOneALogitColumn) {
  Rows steps(5, 3);
  steps.step(std::vector<float>(15, 0.0F), std::vector<RowSampling>(2));
  for (const bool on_gpu : {false, true}) {
    const auto backend = on_gpu ? gpu_backend() : make_cpu_backend(1);
    try {
      run_case(*backend, steps.op_case());
      FAIL();
    } catch (const std::exception& error) {
      EXPECT_STREQ(error.what(), "2 rows of sampling for 3 logit columns");
    }
  }
}

}  // namespace
}  // namespace wisp::backend::selftest
