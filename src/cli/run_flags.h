// What `wisp run` was told; shared by the single answer and the chat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/answer.h"
#include "cli/options.h"
#include "engine/load.h"
#include "text/text_model.h"

namespace wisp::cli {

struct RunFlags {
  ComputeFlags compute;
  std::string model;
  std::string prompt;
  std::string file;
  std::string dash;  // "-": the prompt comes from stdin
  std::optional<uint32_t> count;
  engine::SamplingOptions sampling{
      .temperature = 0.8F, .top_k = 40, .top_p = 0.95F, .min_p = 0.05F};
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  std::optional<std::string> system;
  bool raw = false;
  bool json = false;
  bool drop_oldest = false;
};

AnswerOptions answer_options(const RunFlags& flags);

// A conversation on the terminal until its end; see /help. Throws Error.
void chat(const RunFlags& flags, engine::LoadedModel& model, const text::TextModel& text);

}  // namespace wisp::cli
