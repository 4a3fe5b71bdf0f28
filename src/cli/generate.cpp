#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/logits_file.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/tokens.h"
#include "formats/json.h"

namespace wisp::cli {

namespace {

using nlohmann::json;

constexpr uint32_t kMaxCopies = 4096;
constexpr size_t kMaxSlots = 256;  // jobs that run at once; others wait

struct GenerateFlags {
  ComputeFlags compute;
  std::string model;
  std::string tokens;
  uint32_t count = 0;
  uint32_t copies = 1;
  std::string batch;
  std::optional<uint64_t> shuffle;
  std::string logits;
  bool json = false;
};

// One line of the output.
struct Job {
  std::vector<int32_t> prompt;
  uint32_t count = 0;  // tokens to generate
  std::string where;   // names it in errors
  uint64_t rows = 0;   // those that its positions leave room for
  std::vector<int32_t> tokens = {};
};

uint64_t positions_needed(const Job& job) {
  return job.prompt.size() + std::max<uint64_t>(job.count, 1) - 1;
}

int64_t integer(const json& value, std::string_view what) {
  if (!value.is_number_integer()) fail("{}: expected an integer", what);
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) {
    fail("{}: {} is out of range", what, value.get<uint64_t>());
  }
  return value.get<int64_t>();
}

Job parse_job(std::string_view line) {
  const auto object =
      formats::parse_json_object<json>(line, "the line", {.max_depth = 2, .unique_names = true});
  for (const auto& [key, value] : object.items()) {
    if (key != "tokens" && key != "n") fail("unknown field \"{}\"", one_line(key));
  }
  if (!object.contains("tokens") || !object["tokens"].is_array()) {
    fail("expected an array \"tokens\"");
  }
  if (!object.contains("n")) fail("expected an integer \"n\"");
  Job job;
  for (const json& token : object["tokens"]) {
    const int64_t id = integer(token, "\"tokens\"");
    if (id < 0 || id > INT32_MAX) fail("token id {} is out of range", id);
    job.prompt.push_back(static_cast<int32_t>(id));
  }
  if (job.prompt.empty()) fail("\"tokens\" is empty");
  const int64_t count = integer(object["n"], "\"n\"");
  if (count < 0 || count > UINT32_MAX) fail("\"n\": {} is out of range", count);
  job.count = static_cast<uint32_t>(count);
  return job;
}

std::vector<Job> read_batch(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<Job> jobs;
  std::string_view rest = text;
  while (rest.find_first_not_of(" \t\r\n") != std::string_view::npos) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string where = fmt::format("{}: line {}", path, jobs.size() + 1);
    jobs.push_back(with_context(where, [&] { return parse_job(rest.substr(0, end)); }));
    jobs.back().where = where;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (jobs.empty()) fail("{}: there are no lines", path);
  return jobs;
}

std::vector<Job> make_jobs(const GenerateFlags& flags) {
  if (!flags.batch.empty()) return read_batch(flags.batch);
  const Job job{.prompt = parse_tokens(flags.tokens), .count = flags.count, .where = "--tokens"};
  return std::vector<Job>(flags.copies, job);
}

void add_request(engine::Engine& engine, const Job& job, bool with_logits) {
  with_context(job.where, [&] {
    engine.add({.prompt = job.prompt,
                .max_new_tokens = static_cast<uint32_t>(job.rows),
                .generated_logits = with_logits && job.count > 0});
  });
}

// Requests are numbered from 0 in the order in which they were added.
void run_jobs(engine::Engine& engine, std::vector<Job>& jobs, LogitsFile* file) {
  Progress progress("generating");
  uint64_t done = 0;
  uint64_t total = 0;
  for (const Job& job : jobs) total += job.rows;
  while (engine.busy()) {
    for (const engine::Event& event : engine.step()) {
      const auto index = static_cast<size_t>(event.request);
      Job& job = jobs[index];
      if (event.finish == engine::FinishReason::error) fail("{}: {}", job.where, event.error);
      if (event.token) {
        if (file != nullptr) file->write_row(index, job.tokens.size(), event.logits);
        job.tokens.push_back(*event.token);
        progress.update(++done, total);
      }
      if (event.finish != engine::FinishReason::none && job.tokens.size() < job.count) {
        log(LogLevel::warn, "{}: the context is full after {} of {} tokens", job.where,
            job.tokens.size(), job.count);
      }
    }
  }
}

// JSON: the answers to the lines of a batch are lines too, the copies of a prompt one object.
void print_jobs(const std::vector<Job>& jobs, const GenerateFlags& flags) {
  if (flags.json && !flags.batch.empty()) {
    for (const Job& job : jobs) print(json{{"tokens", job.tokens}}.dump() + "\n");
    return;
  }
  if (flags.json) {
    json lines = json::array();
    for (const Job& job : jobs) lines.push_back(job.tokens);
    print(json{{"tokens", std::move(lines)}}.dump() + "\n");
    return;
  }
  for (const Job& job : jobs) print(tokens_text(job.tokens) + "\n");
}

void run_generate(const GenerateFlags& flags) {
  std::vector<Job> jobs = make_jobs(flags);
  engine::LoadOptions options = load_options(flags.model, flags.compute);
  const model::ModelConfig config = model::read_config(formats::Checkpoint::open(flags.model));
  for (Job& job : jobs) {
    // What a job may have depends on it alone. The last token is chosen from the last position and
    // takes none itself.
    const uint64_t prompt = job.prompt.size();
    const uint32_t own = context_for(config, flags.compute.plan, prompt, positions_needed(job));
    job.rows = std::min<uint64_t>(job.count, own + 1 - std::min<uint64_t>(own, prompt));
    options.context = std::max(options.context, own);
  }
  options.max_slots = static_cast<uint32_t>(std::min(jobs.size(), kMaxSlots));
  options.shuffle_seed = flags.shuffle;
  const auto model = load(options);
  const auto engine = model->make_engine();
  for (const Job& job : jobs) add_request(*engine, job, !flags.logits.empty());

  std::vector<LogitsFile::Tensor> tensors;
  for (size_t i = 0; i < jobs.size(); ++i) {
    tensors.push_back({fmt::format("logits.{}", i), jobs[i].rows});
  }
  std::optional<LogitsFile> file;
  if (!flags.logits.empty()) file.emplace(flags.logits, tensors, model->config().vocab_size);
  run_jobs(*engine, jobs, file ? &*file : nullptr);
  for (const Job& job : jobs) {
    ensure(job.tokens.size() == job.rows, "generate: the engine gave another number of tokens");
  }
  if (file) file->commit();
  print_jobs(jobs, flags);
  print_profile(*model, flags.compute);
}

}  // namespace

void add_generate(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("generate", "continue token ids greedily, not stopping at end tokens");
  const auto flags = std::make_shared<GenerateFlags>();
  add_model_option(command, flags->model);
  CLI::Option* tokens =
      command.add_option("--tokens", flags->tokens, "token ids of the prompt: 1,2,3 or @file");
  CLI::Option* count = command.add_option("-n", flags->count, "tokens to generate");
  command.add_option("--copies", flags->copies, "run the prompt so many times at once")
      ->check(CLI::Range(1U, kMaxCopies))
      ->needs(tokens)
      ->capture_default_str();
  CLI::Option* batch = command.add_option(
      "--batch", flags->batch, "file of lines {\"tokens\":[1,2,3],\"n\":8}, all run in one batch");
  command.add_option("--shuffle", flags->shuffle,
                     "seed that permutes arrival, slots and pages; results do not depend on it");
  command
      .add_option("--logits", flags->logits,
                  "safetensors file to write: \"logits.<line, from 0>\", f32 [n, vocabulary], "
                  "from which the tokens were chosen")
      ->option_text("FILE")
      ->check(check_path);
  command.add_flag(
      "--json", flags->json,
      "print {\"tokens\":[[...],...]}, or a line {\"tokens\":[...]} for each line of a batch, "
      "instead of 1,2,3 lines");
  tokens->needs(count)->excludes(batch);
  count->needs(tokens);
  add_compute_flags(command, flags->compute);
  command.footer(
      "Examples:\n"
      "  wisp generate -m model.gguf --tokens 1,2,3 -n 16 --json\n"
      "  wisp generate -m model.gguf --batch prompts.jsonl --logits out.safetensors --json");
  command.callback([flags, tokens, batch] {
    if (tokens->count() == 0 && batch->count() == 0) {
      throw UsageError("--tokens and -n, or --batch, are needed");
    }
    run_generate(*flags);
  });
}

}  // namespace wisp::cli
