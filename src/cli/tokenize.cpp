#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/tokens.h"

namespace wisp::cli {

namespace {

struct TokenizeFlags {
  std::string model;
  std::string text;
  std::string file;
  bool no_bos = false;
  bool no_parse_special = false;
};

struct DetokenizeFlags {
  std::string model;
  std::string tokens;
};

void run_tokenize(const TokenizeFlags& flags) {
  const text::TextModel model = open_text(flags.model);
  const std::string text = flags.file.empty() ? flags.text : read_text(flags.file);
  const std::vector<int32_t> ids =
      model.tokenizer().encode(text, !flags.no_bos, !flags.no_parse_special);
  print(tokens_text(ids) + "\n");
}

void run_detokenize(const DetokenizeFlags& flags) {
  const std::vector<int32_t> ids = parse_tokens(flags.tokens);
  const text::TextModel model = open_text(flags.model);
  const size_t vocab_size = model.tokenizer().vocab_size();
  for (const int32_t id : ids) {
    if (static_cast<size_t>(id) >= vocab_size) {
      fail("token id {} is out of range: the vocabulary has {}", id, vocab_size);
    }
  }
  print(model.tokenizer().decode(ids, false));
  if (stdout_is_terminal()) print("\n");
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("tokenize", "print the token ids of a text");
  const auto flags = std::make_shared<TokenizeFlags>();
  add_model_option(command, flags->model);
  CLI::Option* text = command.add_option("text", flags->text, "the text");
  CLI::Option* file = command.add_option("-f,--file", flags->file, "file with the text, as it is");
  file->option_text("FILE")->check(check_path);
  text->excludes(file);
  command.add_flag("--no-bos", flags->no_bos, "without the tokens that the model wants around it");
  command.add_flag("--no-parse-special", flags->no_parse_special,
                   "texts such as <|im_end|> are plain text");
  add_verbose_flag(command);
  command.footer(
      "Examples:\n"
      "  wisp tokenize -m model.gguf \"Hello, world\"\n"
      "  wisp tokenize -m model.gguf -f notes.txt --no-bos > ids.txt");
  command.callback([flags, text, file] {
    if (text->count() + file->count() == 0) throw UsageError("a text or -f FILE is needed");
    run_tokenize(*flags);
  });
}

void add_detokenize(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("detokenize", "print the text of token ids");
  const auto flags = std::make_shared<DetokenizeFlags>();
  add_model_option(command, flags->model);
  command.add_option("--tokens", flags->tokens, "token ids: 1,2,3 or @file")->required();
  add_verbose_flag(command);
  command.footer("Example:\n  wisp detokenize -m model.gguf --tokens 9707,11,1879");
  command.callback([flags] { run_detokenize(*flags); });
}

}  // namespace wisp::cli
