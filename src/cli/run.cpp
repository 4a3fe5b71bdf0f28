#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/run_flags.h"

namespace wisp::cli {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPromptBytes = size_t{16} << 20;  // some million tokens
constexpr char kDefaultModel[] = "models/smollm2-135m-instruct.gguf";

// Set-up puts the model beside the folder of the program: build/models, build/release/wisp.
std::string default_model() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) fail("no model was given with -m, and the program's own folder is unknown");
  const fs::path path = program.parent_path().parent_path() / kDefaultModel;
  if (!fs::exists(path, error)) {
    fail("no model was given with -m, and the default one, {}, is not there; make run fetches it",
         path.string());
  }
  return path.string();
}

std::string read_stdin() {
  std::string text;
  char piece[4096];
  while (std::feof(stdin) == 0 && std::ferror(stdin) == 0) {  // a terminal ends once
    text.append(piece, std::fread(piece, 1, sizeof(piece), stdin));
    if (text.size() > kMaxPromptBytes) {
      fail("standard input: more than {} bytes, too long for a prompt", kMaxPromptBytes);
    }
  }
  if (std::ferror(stdin) != 0) fail("standard input: cannot read");
  return text;
}

void drop_last_line_break(std::string& text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
}

std::string read_prompt(const RunFlags& flags, bool from_stdin) {
  if (!from_stdin && flags.file.empty()) return flags.prompt;
  std::string text = from_stdin ? read_stdin() : read_text(flags.file, kMaxPromptBytes);
  drop_last_line_break(text);
  return text;
}

std::vector<int32_t> encode(const RunFlags& flags, const text::TextModel& text,
                            const std::string& prompt) {
  if (flags.raw) return text.tokenizer().encode_prompt(prompt);
  try {
    text.chat_template();
  } catch (const Error& error) {
    fail("{} (--raw sends the text as it is)", error.what());
  }
  std::vector<text::ChatMessage> messages;
  if (flags.system) messages.push_back({.role = "system", .content = *flags.system});
  messages.push_back({.role = "user", .content = prompt});
  return text.encode_chat(messages);
}

void print_json(const Answer& answer, const AnswerOptions& options) {
  using json = nlohmann::ordered_json;
  const auto number = [](std::optional<double> value) { return value ? json(*value) : json(); };
  json object = {{"text", answer.text},
                 {"tokens", answer.tokens},
                 {"finish_reason", to_string(answer.end)},
                 {"timings",
                  {{"prompt_tokens", answer.prompt_tokens},
                   {"prompt_ms", answer.prompt_seconds * 1000},
                   {"prompt_per_second", number(answer.prompt_rate())},
                   {"generated_tokens", answer.tokens.size()},
                   {"generated_ms", answer.generation_seconds * 1000},
                   {"generated_per_second", number(answer.generation_rate())}}}};
  if (answer.stop) object["stop"] = options.stop[*answer.stop];
  if (options.sampling.temperature > 0) object["seed"] = options.sampling.seed;
  print(object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

void answer_once(const RunFlags& flags, engine::LoadedModel& model, const text::TextModel& text,
                 std::vector<int32_t> prompt) {
  const AnswerOptions options = answer_options(flags);
  const auto engine = model.make_engine();
  const InterruptGuard guard;
  const Answer result = answer(
      *engine, text.tokenizer(), std::move(prompt), options,
      [&](std::string_view piece) {
        if (flags.json) return;
        print(piece);
        flush();
      },
      [&] { return guard.interrupted(); });
  if (flags.json) {
    print_json(result, options);
  } else {
    print("\n");
  }
  flush();
  note(summary(result));
  if (result.end == AnswerEnd::context_full) {
    log(LogLevel::warn, "the context of {} tokens is full", model.context());
  }
  if (result.end == AnswerEnd::interrupted) {  // the shell has to see that Ctrl-C ended it
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
}

void run_run(RunFlags& flags, bool prompt_given) {
  const bool from_stdin = !prompt_given && (flags.dash == "-" || !stdin_is_terminal());
  const bool single = prompt_given || from_stdin;
  if (!single && (flags.raw || flags.json)) {
    throw UsageError("--raw and --json need a prompt: -p TEXT, -f FILE or -");
  }
  std::string prompt;
  if (single) {
    prompt = read_prompt(flags, from_stdin);
    if (prompt.empty()) fail("the prompt is empty");
  }
  if (flags.model.empty()) flags.model = default_model();
  check(flags.sampling);
  const text::TextModel text = open_text(flags.model);
  std::vector<int32_t> tokens;
  if (single) {
    tokens = encode(flags, text, prompt);
  } else {
    text.chat_template();  // throws when there is none
  }
  const auto model = load(load_options(flags.model, flags.compute));
  if (single) {
    answer_once(flags, *model, text, std::move(tokens));
  } else {
    chat(flags, *model, text);
  }
  print_profile(*model, flags.compute);
}

void add_sampling_options(CLI::App& command, RunFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    command.add_option(name, value, help)->capture_default_str()->group("Sampling");
  };
  add("--temp", flags.sampling.temperature, "temperature; 0: always the likeliest token");
  add("--top-k", flags.sampling.top_k, "only the K likeliest tokens; 0: off");
  add("--top-p", flags.sampling.top_p, "only the likeliest that make up this share; 1: off");
  add("--min-p", flags.sampling.min_p, "only those with this share of the likeliest; 0: off");
  add("--repeat-penalty", flags.sampling.repeat_penalty, "of the last 64 tokens; 1: off");
  command
      .add_option("--seed", flags.seed,
                  "the same seed gives the same text on one device (default: a new one, told by "
                  "--verbose and --json)")
      ->group("Sampling");
}

}  // namespace

AnswerOptions answer_options(const RunFlags& flags) {
  AnswerOptions options;
  if (flags.count) options.max_new_tokens = *flags.count;
  for (const std::string& stop : flags.stop) {
    if (!stop.empty()) options.stop.push_back(stop);
  }
  options.sampling = flags.sampling;
  // Short enough to type, and whole in JSON readers that know only doubles.
  options.sampling.seed = flags.seed ? *flags.seed : std::random_device{}() % 1'000'000'000U;
  if (options.sampling.temperature > 0) log(LogLevel::info, "seed {}", options.sampling.seed);
  return options;
}

void add_run(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("run", "answer a prompt; without one, chat on the terminal");
  const auto flags = std::make_shared<RunFlags>();
  add_model_option(command, flags->model)
      ->required(false)
      ->description(
          "a .gguf file, or a folder with config.json, *.safetensors and tokenizer.json "
          "(default: the model that make run fetched)");
  CLI::Option* prompt =
      command.add_option("-p,--prompt", flags->prompt, "the prompt")->option_text("TEXT");
  CLI::Option* file = command.add_option(
      "-f,--file", flags->file, "file with the prompt; a line break at its end does not count");
  CLI::Option* dash =
      command.add_option("source", flags->dash, "-: read the prompt from standard input")
          ->check(CLI::IsMember({"-"}));
  file->option_text("FILE")->check(check_path);
  dash->option_text("-");
  prompt->excludes(file)->excludes(dash);
  file->excludes(dash);
  command.add_option("-n", flags->count, "most tokens to generate (default: up to the context)")
      ->option_text("N");
  command
      .add_option("--stop", flags->stop, "end the answer before this text; may be given repeatedly")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--system", flags->system, "system message of the chat template");
  command.add_flag("--raw", flags->raw, "no chat template: continue the prompt as it is");
  command.add_flag("--json", flags->json, "print one object with text, tokens and timings");
  command.add_flag("--drop-oldest", flags->drop_oldest,
                   "a chat that outgrows the context forgets its oldest turns");
  add_sampling_options(command, *flags);
  add_compute_flags(command, flags->compute);
  command.footer(
      "Examples:\n"
      "  wisp run\n"
      "  wisp run -p \"Why is the sky blue?\" -n 200 --temp 0\n"
      "  wisp run -m model.gguf --raw -p \"Once upon a time\" --seed 7\n"
      "  git diff | wisp run -m model.gguf --system \"Write a commit message.\" -");
  command.callback([flags, prompt, file] {
    if (prompt->count() > 0 && flags->prompt.empty()) fail("the prompt is empty");
    run_run(*flags, prompt->count() + file->count() > 0);
  });
}

}  // namespace wisp::cli
