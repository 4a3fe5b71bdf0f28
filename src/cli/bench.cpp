#include "cli/bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "base/checked.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/model_facts.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace wisp::cli {

namespace {

using Clock = std::chrono::steady_clock;
using engine::Event;

constexpr uint32_t kMaxChunk = 512;
constexpr uint32_t kChunkMultiple = 64;
constexpr uint32_t kMaxSequences = 1024;
constexpr uint32_t kWarmUpTokens = 16;

struct BenchFlags {
  ComputeFlags compute;
  std::string model;
  std::vector<uint32_t> prompts = {512};
  std::vector<uint32_t> generates = {128};
  std::vector<uint32_t> depths = {0};
  std::vector<uint32_t> sequences = {1};
  uint32_t repetitions = 5;
  std::string output = "md";
};

// Tests of one number of sequences: they share a loaded model.
struct Group {
  uint32_t sequences = 1;
  uint32_t chunk = kMaxChunk;
  std::vector<BenchTest> tests;
};

// Sequences that have their prompt early generate while others still read theirs.
uint64_t lead_tokens(const BenchTest& test, uint32_t chunk) {
  return test.sequences == 1 ? 0 : test.sequences * ceil_div(test.depth, chunk) + 4;
}

uint64_t positions_needed(const BenchTest& test, uint32_t chunk) {
  if (test.prompt != 0) return uint64_t{test.depth} + test.prompt;
  return uint64_t{test.depth} + 1 + test.generate + lead_tokens(test, chunk);
}

// The largest chunk that ends at `depth`, where a prompt test starts its clock.
uint32_t chunk_for(uint32_t depth, uint32_t chunk) {
  while (chunk > 0 && depth % chunk != 0) chunk -= kChunkMultiple;
  if (chunk == 0) {
    throw UsageError(
        fmt::format("-d {}: prompt tests need a multiple of {}; leave them out by -p 0", depth,
                    kChunkMultiple));
  }
  return chunk;
}

std::vector<Group> make_groups(const BenchFlags& flags) {
  std::vector<Group> groups;
  for (const uint32_t sequences : flags.sequences) {
    Group group{.sequences = sequences};
    for (const uint32_t depth : flags.depths) {
      for (const uint32_t prompt : flags.prompts) {
        if (prompt == 0) continue;
        group.chunk = chunk_for(depth, group.chunk);
        group.tests.push_back({.prompt = prompt, .depth = depth, .sequences = sequences});
      }
      for (const uint32_t generate : flags.generates) {
        if (generate == 0) continue;
        group.tests.push_back({.generate = generate, .depth = depth, .sequences = sequences});
      }
    }
    if (group.tests.empty()) throw UsageError("nothing to measure: -p and -n are 0");
    groups.push_back(std::move(group));
  }
  return groups;
}

// The same tokens in every run.
std::vector<int32_t> some_tokens(uint32_t count, uint32_t vocab_size, uint32_t seed) {
  std::vector<int32_t> tokens(count);
  uint64_t state = seed + 1;
  for (int32_t& token : tokens) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    token = static_cast<int32_t>((state >> 33) % vocab_size);
  }
  return tokens;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Steps until the engine is idle; `take` gets each event with its sequence's number.
void run_all(engine::Engine& engine, engine::RequestId first,
             const std::function<void(size_t, const Event&)>& take) {
  while (engine.busy()) {
    for (const Event& event : engine.step()) {
      if (event.finish == engine::FinishReason::error) throw Error(event.error);
      take(static_cast<size_t>(event.request) - static_cast<size_t>(first), event);
    }
  }
}

// A prompt after `depth` others. Sequences read their prompts one after another, so that the times
// from depth to the end add up.
BenchSample run_prompt(engine::Engine& engine, const BenchTest& test, uint32_t vocab_size) {
  std::vector<double> at_depth(test.sequences, 0);
  std::vector<double> at_end(test.sequences, 0);
  double first_token_sum = 0;
  std::optional<engine::RequestId> first;
  std::vector<engine::Request> requests(test.sequences);
  for (uint32_t i = 0; i < test.sequences; ++i) {
    requests[i].prompt = some_tokens(test.depth + test.prompt, vocab_size, i);
    requests[i].max_new_tokens = 1;
    requests[i].prompt_progress = test.depth > 0;
  }
  const auto start = Clock::now();
  for (engine::Request& request : requests) {
    const engine::RequestId id = engine.add(std::move(request));
    if (!first) first = id;
  }
  run_all(engine, *first, [&](size_t i, const Event& event) {
    const double now = seconds_since(start);
    if (event.position + 1 == test.depth) at_depth[i] = now;
    if (!event.token) return;
    at_end[i] = now;
    first_token_sum += now;
  });
  BenchSample sample{.tokens = uint64_t{test.prompt} * test.sequences};
  if (test.depth == 0) {
    sample.seconds = *std::max_element(at_end.begin(), at_end.end());
  } else {
    for (uint32_t i = 0; i < test.sequences; ++i) sample.seconds += at_end[i] - at_depth[i];
  }
  sample.first_token_seconds = first_token_sum / test.sequences;
  return sample;
}

// Tokens after `depth` others. The clock runs while all sequences generate.
BenchSample run_generate(engine::Engine& engine, const BenchTest& test, uint32_t vocab_size,
                         uint32_t chunk) {
  const uint64_t wanted = uint64_t{test.generate} * test.sequences;
  const bool with_prompt = test.depth > 0;
  const uint64_t each = test.generate + (with_prompt ? 1 + lead_tokens(test, chunk) : 0);
  std::vector<engine::RequestId> ids;
  auto start = Clock::now();
  for (uint32_t i = 0; i < test.sequences; ++i) {
    engine::Request request;
    (with_prompt ? request.prompt : request.forced) =
        some_tokens(std::max(test.depth, 1U), vocab_size, i);
    request.max_new_tokens = checked_cast<uint32_t>(each, "tokens to generate");
    ids.push_back(engine.add(std::move(request)));
  }
  BenchSample sample;
  std::vector<bool> started(test.sequences, false);
  uint32_t num_started = 0;
  bool counting = !with_prompt;
  bool done = false;
  run_all(engine, ids.front(), [&](size_t i, const Event& event) {
    if (!event.token || done) return;
    if (counting) {
      if (++sample.tokens < wanted) return;
      sample.seconds = seconds_since(start);
      done = true;
      for (const engine::RequestId id : ids) engine.cancel(id);
    } else if (!started[i]) {
      started[i] = true;
      counting = ++num_started == test.sequences;
      start = Clock::now();
    }
  });
  ensure(done, "bench: a sequence ended early");
  return sample;
}

BenchSample run_test(engine::Engine& engine, const BenchTest& test, uint32_t vocab_size,
                     uint32_t chunk) {
  return test.prompt != 0 ? run_prompt(engine, test, vocab_size)
                          : run_generate(engine, test, vocab_size, chunk);
}

BenchResult measure(engine::Engine& engine, const BenchTest& test, uint32_t vocab_size,
                    const Group& group, uint32_t repetitions) {
  BenchTest warm_up = test;
  warm_up.generate = std::min(warm_up.generate, kWarmUpTokens);
  run_test(engine, warm_up, vocab_size, group.chunk);
  BenchResult result{.test = test};
  Progress progress("measuring");
  for (uint32_t i = 0; i < repetitions; ++i) {
    result.samples.push_back(run_test(engine, test, vocab_size, group.chunk));
    progress.update(i + 1, repetitions);
  }
  return result;
}

BenchSubject describe(const BenchFlags& flags, engine::LoadedModel& model) {
  const ModelFacts facts = model_facts(model.checkpoint());
  const backend::BackendInfo info = model.backend().info();
  return {.path = flags.model,
          .model = model_name(model.config(), facts),
          .bytes = facts.bytes,
          .params = facts.params,
          .backend = info.kind,
          .device = info.device,
          .threads = flags.compute.threads == 0 ? std::thread::hardware_concurrency()
                                                : flags.compute.threads,
          .math = flags.compute.plan.math,
          .kv = flags.compute.plan.kv};
}

void run_bench(const BenchFlags& flags) {
  const std::vector<Group> groups = make_groups(flags);
  const bool with_sequences = std::any_of(groups.begin(), groups.end(),
                                          [](const Group& group) { return group.sequences != 1; });
  const bool table = flags.output == "md";
  BenchSubject subject;
  std::vector<BenchResult> results;
  for (const Group& group : groups) {
    uint64_t needed = 0;
    for (const BenchTest& test : group.tests) {
      needed = std::max(needed, positions_needed(test, group.chunk));
    }
    engine::LoadOptions options = load_options(flags.model, flags.compute);
    options.context =
        std::max(options.context, checked_cast<uint32_t>(needed, "positions of a sequence"));
    options.max_slots = group.sequences;
    options.prefill_chunk = group.chunk;
    const auto model = load(options);
    subject = describe(flags, *model);
    if (table && results.empty()) {
      note(fmt::format("{}: {}", subject.backend, subject.device));
      print(bench_header(subject, with_sequences));
    }
    for (const BenchTest& test : group.tests) {
      const auto engine = model->make_engine();
      results.push_back(
          measure(*engine, test, model->config().vocab_size, group, flags.repetitions));
      if (table) print(bench_row(subject, results.back(), with_sequences));
      flush();
    }
    print_profile(*model, flags.compute);
  }
  if (!table) print(bench_json(subject, results));
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("bench", "measure tokens a second and time to first token");
  const auto flags = std::make_shared<BenchFlags>();
  add_model_option(command, flags->model);
  const auto list = [&](const char* name, std::vector<uint32_t>& values, const char* help) {
    return command.add_option(name, values, help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->option_text("N,...");
  };
  list("-p", flags->prompts,
       "prompt tokens, a list such as 128,512 (default 512); 0: no prompt tests");
  list("-n", flags->generates, "tokens to generate, a list (default 128); 0: no generation tests");
  list("-d", flags->depths, "tokens before those measured, a list (default 0)");
  list("-b", flags->sequences, "sequences at once, a list (default 1); t/s is the total over them")
      ->check(CLI::Range(1U, kMaxSequences));
  command
      .add_option("-r", flags->repetitions, "runs of each test after one to warm up (default 5)")
      ->check(CLI::Range(1U, 10000U))
      ->option_text("N");
  command.add_option("-o,--output", flags->output, "a table (default), or all runs")
      ->check(CLI::IsMember({"md", "json"}))
      ->option_text("md|json");
  add_compute_flags(command, flags->compute);
  command.footer(
      "The first token of a prompt test counts from the request to the first generated token.\n"
      "Examples:\n"
      "  wisp bench -m model.gguf\n"
      "  wisp bench -m model.gguf -p 0 -n 128 -d 0,4096 -b 1,16 -o json");
  command.callback([flags] { run_bench(*flags); });
}

}  // namespace wisp::cli
