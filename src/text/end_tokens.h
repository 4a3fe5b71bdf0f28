// Tokens that end generation, known by their texts. Internal.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace wisp::text {

// Whether a token of this text ends a turn or a text in the models that have it.
bool is_end_text(std::string_view text);

struct EndToken {
  int32_t id;
  std::string_view text;
};

// The ids of the candidates that end generation, sorted, each once. Some vocabularies use a common
// end text for something else; the other candidates tell.
std::vector<int32_t> choose_end_ids(std::span<const EndToken> candidates);

}  // namespace wisp::text
