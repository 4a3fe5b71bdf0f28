// One answer of a model: tokens in, text out while it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "text/tokenizer.h"

namespace wisp::cli {

struct AnswerOptions {
  uint32_t max_new_tokens = UINT32_MAX;
  std::vector<std::string> stop;  // texts that end the answer
  engine::SamplingOptions sampling;
};

enum class AnswerEnd : uint8_t { end_token, stop_text, length, context_full, interrupted };
std::string_view to_string(AnswerEnd end);

struct Answer {
  std::string text;             // UTF-8, without end token and stop text
  std::vector<int32_t> tokens;  // all that were generated
  AnswerEnd end = AnswerEnd::length;
  std::optional<size_t> stop;  // which stop text
  size_t prompt_tokens = 0;
  double prompt_seconds = 0;      // to the first token
  double generation_seconds = 0;  // from the first token to the last
  // Tokens a second; nullopt where nothing was measured.
  std::optional<double> prompt_rate() const;
  std::optional<double> generation_rate() const;
};

// Runs one request. `show` gets the text in pieces of whole characters; `interrupted` is asked
// between tokens. Throws Error.
Answer answer(engine::Engine& engine, const text::Tokenizer& tokenizer, std::vector<int32_t> prompt,
              const AnswerOptions& options, const std::function<void(std::string_view)>& show,
              const std::function<bool()>& interrupted);

// "prompt 24 tokens, 310 tok/s; generated 57 tokens, 88 tok/s".
std::string summary(const Answer& answer);

}  // namespace wisp::cli
