#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/logits_file.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/tokens.h"

namespace wisp::cli {

namespace {

constexpr uint32_t kMaxChunk = 1U << 20;

struct LogitsFlags {
  ComputeFlags compute;
  std::string model;
  std::string tokens;
  std::string output;
  uint32_t chunk = 512;
};

void run_logits(const LogitsFlags& flags) {
  std::vector<int32_t> tokens = parse_tokens(flags.tokens);
  const uint64_t count = tokens.size();
  engine::LoadOptions options = load_options(flags.model, flags.compute);
  options.context = context_for(model::read_config(formats::Checkpoint::open(flags.model)),
                                flags.compute.plan, count, count);
  options.prefill_chunk = flags.chunk;
  const auto model = load(options);

  engine::Request request;
  const bool one_by_one = flags.chunk == 1;
  request.prompt_logits = !one_by_one;
  request.generated_logits = one_by_one;
  (one_by_one ? request.forced : request.prompt) = std::move(tokens);
  const auto engine = model->make_engine();
  engine->add(std::move(request));

  LogitsFile file(flags.output, {{.name = "logits", .rows = count}}, model->config().vocab_size);
  Progress progress("logits");
  uint64_t done = 0;
  while (engine->busy()) {
    for (const engine::Event& event : engine->step()) {
      if (event.finish == engine::FinishReason::error) throw Error(event.error);
      if (!event.logits.empty()) {
        file.write_row(0, event.position, event.logits);
        progress.update(++done, count);
      }
    }
  }
  ensure(done == count, "logits: the engine left positions out");
  file.commit();
  print_profile(*model, flags.compute);
}

}  // namespace

void add_logits(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("logits", "write the logits of every position to a file");
  const auto flags = std::make_shared<LogitsFlags>();
  add_model_option(command, flags->model);
  command.add_option("--tokens", flags->tokens, "token ids: 1,2,3 or @file")->required();
  command
      .add_option("-o,--output", flags->output,
                  "safetensors file to write: \"logits\", f32 [tokens, vocabulary]")
      ->option_text("FILE")
      ->check(check_path)
      ->required();
  command
      .add_option("--chunk", flags->chunk,
                  "tokens a step, rounded up to a multiple of 64 (default 512); 1: one by one, as "
                  "generated tokens run")
      ->check(CLI::Range(1U, kMaxChunk))
      ->option_text("N");
  add_compute_flags(command, flags->compute);
  command.footer(
      "Examples:\n"
      "  wisp logits -m model.gguf --tokens 1,2,3 -o logits.safetensors\n"
      "  wisp logits -m model.gguf --tokens @ids.txt --chunk 1 --math exact --kv f32 -o out.st");
  command.callback([flags] { run_logits(*flags); });
}

}  // namespace wisp::cli
