// Runs tokenizer cases that are too large for the repository, and tokenizes for
// tools/compare_tokenizers.py.
//
//   tokenizer_cases FOLDER              every <name>.gguf with <name>.gguf.inp and .out beside it,
//   as
//                                       llama.cpp's source has them in models/: fails on a
//                                       difference
//   tokenizer_cases --encode MODEL [--special]
//                                       texts from stdin, each ended by a zero byte: a line of ids
//                                       each
//
//   tokenizer_cases --render TEMPLATE   a chat template with the variables of a JSON object from
//   stdin,
//                                       "messages" among them: the text
//
// MODEL is a .gguf file, a tokenizer.json, or a folder with one.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "formats/gguf.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace {

using wisp::text::Tokenizer;
namespace fs = std::filesystem;

Tokenizer open_tokenizer(const fs::path& path) {
  if (fs::is_directory(path)) return Tokenizer::from_json_file(path / "tokenizer.json");
  if (path.extension() == ".json") return Tokenizer::from_json_file(path);
  const wisp::MappedFile file(path);
  const wisp::formats::Gguf gguf = wisp::formats::parse_gguf(file.bytes());
  return wisp::with_context(path.string(), [&] { return Tokenizer::from_gguf(gguf.metadata); });
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + separator.size();
  }
  return parts;
}

std::vector<int32_t> read_ids(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<int32_t>(stream), std::istream_iterator<int32_t>()};
}

int run_folder(const fs::path& folder) {
  std::vector<fs::path> models;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".gguf" && fs::exists(entry.path().string() + ".inp")) {
      models.push_back(entry.path());
    }
  }
  std::sort(models.begin(), models.end());
  size_t failed = 0, total = 0;
  for (const fs::path& model : models) {
    const std::clock_t start = std::clock();
    const Tokenizer tokenizer = open_tokenizer(model);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const auto inputs = split(wisp::read_text(model.string() + ".inp"), "\n__ggml_vocab_test__\n");
    const auto outputs = split(wisp::read_text(model.string() + ".out"), "\n");
    if (inputs.size() != outputs.size()) {
      wisp::fail("{}: {} inputs, {} outputs", model.string(), inputs.size(), outputs.size());
    }
    size_t bad = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<int32_t> expected = read_ids(outputs[i]);
      const std::vector<int32_t> found = tokenizer.encode(inputs[i], false, false);
      ++total;
      if (found == expected) continue;
      ++bad;
      fmt::print("{}: case {}\n  text     {}\n  expected {}\n  found    {}\n",
                 model.filename().string(), i, inputs[i], fmt::join(expected, " "),
                 fmt::join(found, " "));
    }
    failed += bad;
    fmt::print("{}: {} of {} cases, loaded in {:.2f} s of processor time\n",
               model.filename().string(), inputs.size() - bad, inputs.size(), seconds);
  }
  fmt::print("{} vocabularies, {} cases, {} failed\n", models.size(), total, failed);
  return models.empty() || failed > 0 ? 1 : 0;
}

int encode_stdin(const fs::path& model, bool special) {
  const Tokenizer tokenizer = open_tokenizer(model);
  for (std::string text; std::getline(std::cin, text, '\0');) {
    fmt::print("{}\n", fmt::join(tokenizer.encode(text, false, special), " "));
  }
  return 0;
}

int render_stdin(const fs::path& file) {
  using json = nlohmann::ordered_json;
  const std::string source = wisp::read_text(file);
  for (std::string input; std::getline(std::cin, input, '\0');) {
    const json variables = json::parse(input);
    std::vector<wisp::text::ChatMessage> messages;
    for (const json& message : variables.at("messages")) {
      messages.push_back({.role = "", .content = "", .extra_json = message.dump()});
    }
    try {
      const wisp::text::ChatTemplate chat_template(source, variables.value("bos_token", ""),
                                                   variables.value("eos_token", ""));
      const bool prompt = variables.value("add_generation_prompt", true);
      const std::string text = chat_template.render(
          messages,
          {.add_generation_prompt = prompt, .variables_json = input, .now = 86400 * 20000});
      std::cout << '+' << text;
    } catch (const wisp::Error& error) {
      std::cout << '-' << error.what();
    }
    std::cout << '\0';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 1) return run_folder(arguments[0]);
    if (arguments.size() >= 2 && arguments[0] == "--encode") {
      return encode_stdin(arguments[1], arguments.size() > 2 && arguments[2] == "--special");
    }
    if (arguments.size() == 2 && arguments[0] == "--render") return render_stdin(arguments[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tokenizer_cases: error: {}\n", error.what());
    return 1;
  }
  fmt::print(stderr,
             "usage: tokenizer_cases FOLDER | --encode MODEL [--special] | --render TEMPLATE\n");
  return 2;
}
