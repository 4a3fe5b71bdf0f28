// wisp: runs language models from the command line.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <sstream>
#include <string>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "formats/quoted.h"

namespace wisp::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr size_t kMaxMessageBytes = 8192;

int report(std::string_view message, int status) {
  // Names from broken files can be of any length.
  const bool cut = message.size() > kMaxMessageBytes;
  note("wisp: error: " + one_line(message.substr(0, kMaxMessageBytes)) + (cut ? "..." : ""));
  return status;
}

std::unique_ptr<CLI::App> make_parser() {
  auto app = std::make_unique<CLI::App>("Runs language models on the GPU and the CPU.", "wisp");
  app->set_version_flag("--version", "wisp " WISP_VERSION, "print the version");
  app->set_help_flag("-h,--help", "print this help");
  app->get_formatter()->column_width(32);
  app->require_subcommand(1);
  app->fallthrough();  // wisp run --version
  app->footer(
      "Examples:\n"
      "  wisp run -p \"Why is the sky blue?\"\n"
      "  wisp run -m model.gguf\n"
      "  wisp COMMAND --help");
  add_run(*app);
  add_generate(*app);
  add_logits(*app);
  add_tokenize(*app);
  add_detokenize(*app);
  add_inspect(*app);
  add_perplexity(*app);
  add_bench(*app);
  add_quantize(*app);
  add_devices(*app);
  for (CLI::App* command : app->get_subcommands({})) check_numbers(*command);
  return app;
}

// " (see wisp run --help)".
std::string hint(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  const std::string command = commands.empty() ? "" : " " + commands.front()->get_name();
  return " (see wisp" + command + " --help)";
}

// The parser would only say that a command is missing.
void check_command(const CLI::App& app, const std::string& name) {
  if (name.starts_with('-')) return;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return;
  }
  throw UsageError("there is no command " + formats::in_quotes(name));
}

// Commands run inside parse().
int run(int argc, char** argv) {
  const auto app = make_parser();
  try {
    if (argc > 1) check_command(*app, argv[1]);
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report(error.what() + hint(*app), kWrongUsage);
    std::ostringstream text;  // help or version
    app->exit(error, text, text);
    print(text.str());
  } catch (const UsageError& error) {
    return report(error.what() + hint(*app), kWrongUsage);
  }
  flush();
  return 0;
}

}  // namespace
}  // namespace wisp::cli

int main(int argc, char** argv) {
  using wisp::cli::report;
  wisp::cli::open_closed_files();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write
  try {
    return wisp::cli::run(argc, argv);
  } catch (const wisp::cli::BrokenPipe&) {
    return wisp::cli::kFailed;
  } catch (const std::bad_alloc&) {
    return report("out of memory", wisp::cli::kFailed);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(error.path1().string() + ": " + error.code().message(), wisp::cli::kFailed);
  } catch (const std::exception& error) {
    return report(error.what(), wisp::cli::kFailed);
  } catch (...) {
    return report("unknown failure", wisp::cli::kFailed);
  }
}
