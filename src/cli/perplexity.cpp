#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/kl_base.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace wisp::cli {

namespace {

constexpr uint32_t kDefaultContext = 512;

struct PerplexityFlags {
  ComputeFlags compute;
  std::string model;
  std::string file;
  uint32_t chunk = 512;
  bool json = false;
  std::string kl_base;
};

using Positions = std::function<void(std::span<const float> logits, int32_t next)>;

// Sums over scored tokens, and the perplexity with the standard error of its logarithm.
struct Score {
  uint64_t count = 0;
  double sum = 0;          // of -ln p
  double sum_squares = 0;  // of its square

  void add(double loss) {
    ++count;
    sum += loss;
    sum_squares += loss * loss;
  }
  double perplexity() const { return std::exp(sum / static_cast<double>(count)); }
  double error() const {
    if (count < 2) return 0;
    const auto n = static_cast<double>(count);
    const double mean = sum / n;
    const double variance = std::max(0.0, sum_squares / n - mean * mean);
    return std::sqrt(variance / (n - 1)) * perplexity();
  }
};

// Runs one window and scores its second half: position p foretells token p + 1. As llama-perplexity
// does, BOS takes the place of the first token where the model wants one.
void score_window(engine::Engine& engine, std::span<const int32_t> window,
                  std::optional<int32_t> bos, bool one_by_one, const Positions& scored) {
  std::vector<int32_t> tokens(window.begin(), window.end());
  if (bos) tokens.front() = *bos;
  engine::Request request;
  request.prompt_logits = !one_by_one;
  request.generated_logits = one_by_one;
  (one_by_one ? request.forced : request.prompt) = std::move(tokens);
  engine.add(std::move(request));
  while (engine.busy()) {
    for (const engine::Event& event : engine.step()) {
      if (event.finish == engine::FinishReason::error) throw Error(event.error);
      if (event.logits.empty() || event.position < window.size() / 2) continue;
      if (event.position + 1 < window.size()) {
        scored(event.logits, window[event.position + 1]);
      }
    }
  }
}

// What --kl-base does: a file that is not there is written, one that is there is compared with.
class KlBase {
 public:
  KlBase(const std::string& path, const KlBaseRun& run) {
    if (std::filesystem::exists(path)) {
      reader_.emplace(path, run);
    } else {
      writer_.emplace(path, run);
    }
  }
  void add(std::span<const float> logits, double log_sum, int32_t next) {
    if (writer_) writer_->add(logits, log_sum);
    if (reader_) divergence_.add(reader_->next(), logits, log_sum, next);
  }
  void finish() {
    if (writer_) writer_->commit();
  }
  bool writes() const { return writer_.has_value(); }
  bool compares() const { return reader_.has_value(); }
  const Divergence& divergence() const { return divergence_; }

 private:
  std::optional<KlBaseWriter> writer_;
  std::optional<KlBaseReader> reader_;
  Divergence divergence_;
};

void run_perplexity(const PerplexityFlags& flags) {
  const std::string text = read_text(flags.file);
  const text::TextModel text_model = open_text(flags.model);
  const text::Tokenizer& tokenizer = text_model.tokenizer();
  const std::vector<int32_t> tokens = tokenizer.encode(text, true, false);
  const uint32_t context =
      flags.compute.plan.context == 0 ? kDefaultContext : flags.compute.plan.context;
  if (context < 4) fail("a context of {} tokens is too short to score", context);
  if (tokens.size() < size_t{2} * context) {
    fail("{}: {} tokens, at least {} are needed for windows of {}", flags.file, tokens.size(),
         size_t{2} * context, context);
  }
  const size_t windows = tokens.size() / context;
  const auto scored_end = tokens.begin() + static_cast<ptrdiff_t>(windows * context);
  std::optional<KlBase> base;
  if (!flags.kl_base.empty()) {
    const auto config = model::read_config(formats::Checkpoint::open(flags.model));
    const KlBaseRun run = {.context = context,
                           .vocab_size = config.vocab_size,
                           .tokens = {tokens.begin(), scored_end}};
    base.emplace(flags.kl_base, run);
  }
  engine::LoadOptions options = load_options(flags.model, flags.compute);
  options.context = context;
  options.prefill_chunk = std::min(flags.chunk, context);
  const auto model = load(options);
  const auto engine = model->make_engine();
  const std::optional<int32_t> bos =
      tokenizer.adds_bos() ? tokenizer.bos_id() : std::optional<int32_t>();

  Score score;
  Progress progress("perplexity");
  for (size_t i = 0; i < windows; ++i) {
    score_window(*engine, std::span(tokens).subspan(i * context, context), bos, flags.chunk == 1,
                 [&](std::span<const float> logits, int32_t next) {
                   const double log_sum = log_sum_exp(logits);
                   score.add(log_sum - static_cast<double>(logits[static_cast<size_t>(next)]));
                   if (base) base->add(logits, log_sum, next);
                 });
    if (!flags.json) {
      print(fmt::format("[{}]{:.4f},", i + 1, score.perplexity()));
      flush();
    } else {
      progress.update(i + 1, windows);
    }
  }
  if (base) base->finish();
  if (flags.json) {
    nlohmann::ordered_json out = {{"perplexity", score.perplexity()},
                                  {"error", score.error()},
                                  {"windows", windows},
                                  {"context", context},
                                  {"scored_tokens", score.count}};
    if (base && base->compares()) out.update(base->divergence().summary());
    print(out.dump() + "\n");
  } else {
    print(fmt::format("\nFinal estimate: PPL = {:.4f} +/- {:.5f}\n", score.perplexity(),
                      score.error()));
    if (base && base->compares()) print(base->divergence().text());
    if (base && base->writes()) {
      print(fmt::format("{}: log-probabilities of {} positions written\n", one_line(flags.kl_base),
                        score.count));
    }
  }
  print_profile(*model, flags.compute);
}

}  // namespace

void add_perplexity(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "perplexity", "score a text: windows of the context's length, the second half of each");
  const auto flags = std::make_shared<PerplexityFlags>();
  add_model_option(command, flags->model);
  command.add_option("-f,--file", flags->file, "file with the text")
      ->option_text("FILE")
      ->check(check_path)
      ->required();
  command
      .add_option("--chunk", flags->chunk,
                  "tokens a step, rounded up to a multiple of 64 (default 512); 1: one by one, as "
                  "generated tokens run")
      ->check(CLI::PositiveNumber)
      ->option_text("N");
  command
      .add_option("--kl-base", flags->kl_base,
                  "a file of log-probabilities: written if it is not there, else compared with")
      ->option_text("FILE")
      ->check(check_path);
  command.add_flag("--json", flags->json, "print one object at the end");
  add_compute_flags(command, flags->compute);
  command.footer(
      "-c is the length of a window, 512 unless given.\n"
      "Examples:\n  wisp perplexity -m model.gguf -f wiki.test.raw -c 512\n"
      "  wisp perplexity -m model-f16.gguf -f wiki.test.raw --kl-base f16.kld\n"
      "  wisp perplexity -m model-q4_k_m.gguf -f wiki.test.raw --kl-base f16.kld");
  command.callback([flags] { run_perplexity(*flags); });
}

}  // namespace wisp::cli
