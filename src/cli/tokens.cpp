#include "cli/tokens.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/options.h"
#include "formats/quoted.h"

namespace wisp::cli {

namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

void skip_space(std::string_view& text) {
  const size_t start = text.find_first_not_of(kSpace);
  text.remove_prefix(start == std::string_view::npos ? text.size() : start);
}

int32_t token_id(std::string_view word) {
  int32_t id = 0;
  const auto result = std::from_chars(word.data(), word.data() + word.size(), id);
  if (result.ec != std::errc{} || id < 0) fail("token id {} is out of range", word);
  return id;
}

bool is_integer(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// The ids of `text`, and the first word that is not an integer, where reading stopped.
struct Ids {
  std::vector<int32_t> ids;
  std::optional<std::string_view> wrong;
};

// One comma at most between two ids; a last one may follow.
Ids read_ids(std::string_view text) {
  Ids result;
  skip_space(text);
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \t\r\n\v\f,"), text.size());
    const std::string_view word = text.substr(0, end);
    if (!is_integer(word)) {
      result.wrong = word.empty() ? text.substr(0, 1) : word;
      return result;
    }
    result.ids.push_back(token_id(word));
    text.remove_prefix(end);
    skip_space(text);
    if (text.starts_with(',')) text.remove_prefix(1);
    skip_space(text);
  }
  return result;
}

}  // namespace

std::vector<int32_t> parse_tokens(const std::string& argument) {
  if (!argument.starts_with('@')) {
    Ids result = read_ids(argument);
    if (result.wrong) {
      throw UsageError(fmt::format("--tokens: expected ids such as 1,2,3 or @file, found {}",
                                   formats::in_quotes(*result.wrong)));
    }
    if (result.ids.empty()) fail("--tokens: there are no tokens");
    return std::move(result.ids);
  }
  const std::string path = argument.substr(1);
  const std::string text = read_text(path);
  return with_context(path, [&] {
    Ids result = read_ids(text);
    if (result.wrong) fail("expected token ids, found {}", formats::in_quotes(*result.wrong));
    if (result.ids.empty()) fail("there are no tokens");
    return std::move(result.ids);
  });
}

std::string tokens_text(std::span<const int32_t> tokens) {
  return fmt::format("{}", fmt::join(tokens, ","));
}

}  // namespace wisp::cli
