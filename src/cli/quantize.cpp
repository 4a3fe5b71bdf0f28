#include "model/quantize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/remove_on_signal.h"
#include "formats/checkpoint.h"
#include "formats/imatrix.h"
#include "formats/output_file.h"

namespace wisp::cli {

namespace {

namespace fs = std::filesystem;

struct QuantizeFlags {
  std::string input;
  std::string output;
  std::string type;
  std::string imatrix;
  uint32_t threads = 0;  // 0: one a processor
};

std::string type_names() {
  std::string names;
  for (const model::QuantizeMix& mix : model::quantize_mixes()) {
    names += names.empty() ? "" : ", ";
    names += mix.name;
  }
  return names;
}

void require_another_file(const fs::path& output, const fs::path& input) {
  std::error_code ignored;  // what is not there is no other file's
  if (fs::equivalent(output, input, ignored)) {
    throw UsageError(output.string() + ": is the input, give another name");
  }
}

formats::Checkpoint open_input(const QuantizeFlags& flags) {
  if (fs::is_directory(flags.input)) {
    fail("{}: a folder; only GGUF files can be quantised yet", flags.input);
  }
  formats::Checkpoint checkpoint = formats::Checkpoint::open(flags.input);
  for (const MappedFile& file : checkpoint.files()) {
    require_another_file(flags.output, file.path());
  }
  return checkpoint;
}

// "1 tensor", "2 tensors".
std::string tensors_text(uint32_t count) {
  return fmt::format("{} tensor{}", count, count == 1 ? "" : "s");
}

void run_quantize(const QuantizeFlags& flags) {
  const model::QuantizeMix* mix = model::find_quantize_mix(flags.type);
  if (mix == nullptr) {
    throw UsageError("--type: there is no " + one_line(flags.type) + "; types are " + type_names());
  }
  const formats::Checkpoint checkpoint = open_input(flags);
  std::optional<formats::Imatrix> imatrix;
  if (!flags.imatrix.empty()) {
    require_another_file(flags.output, flags.imatrix);
    imatrix = formats::read_imatrix(flags.imatrix);
  }
  const RemoveOnSignal remove_on_signal(formats::OutputFile::temporary_of(flags.output).string());
  formats::OutputFile output(flags.output);
  ThreadPool pool(flags.threads);
  model::QuantizeReport report;
  {
    Progress progress("quantize");
    report = model::quantize(
        checkpoint, output,
        {.mix = *mix,
         .imatrix = imatrix ? &*imatrix : nullptr,
         .progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); }},
        pool);
  }
  output.commit();
  if (report.twice > 0) {
    note(fmt::format("note: {} had been quantised before, which adds to the error",
                     tensors_text(report.twice)));
  }
  if (imatrix && report.without_importance > 0) {
    note(fmt::format("note: {} of {} without an entry in {}", report.without_importance,
                     tensors_text(report.changed), flags.imatrix));
  }
  print(fmt::format("{}: {}, {} -> {}, {:.2f} bits per weight\n", one_line(flags.output), mix->name,
                    bytes_text(report.bytes_before), bytes_text(report.bytes_after),
                    8.0 * static_cast<double>(report.bytes_after) /
                        static_cast<double>(std::max<uint64_t>(report.weights, 1))));
}

}  // namespace

void add_quantize(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("quantize", "write a GGUF file anew with its weights in a smaller type");
  const auto flags = std::make_shared<QuantizeFlags>();
  command.add_option("input", flags->input, "a .gguf file, best with F16, BF16 or F32 weights")
      ->option_text("IN")
      ->check(check_path)
      ->required();
  command.add_option("output", flags->output, "the .gguf file to write")
      ->option_text("OUT")
      ->check(check_path)
      ->required();
  command.add_option("--type", flags->type, type_names())->option_text("TYPE")->required();
  command
      .add_option("--imatrix", flags->imatrix,
                  "an importance matrix of llama-imatrix: which columns of a weight matter more")
      ->option_text("FILE")
      ->check(check_path);
  command.add_option("-t,--threads", flags->threads, "CPU threads (default: one a processor)")
      ->check(CLI::Range(1U, kMaxThreads))
      ->option_text("N");
  command.footer(
      "Some tensors get a larger type than the one that is asked for, as in llama.cpp's files of\n"
      "that name; norms, biases and other small ones stay as they are.\n"
      "Examples:\n"
      "  wisp quantize model-f16.gguf model-q4_k_m.gguf --type Q4_K_M\n"
      "  wisp quantize model-f16.gguf small.gguf --type IQ4_XS --imatrix imatrix.gguf");
  command.callback([flags] { run_quantize(*flags); });
}

}  // namespace wisp::cli
