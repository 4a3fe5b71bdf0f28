#include "text/end_tokens.h"

#include <algorithm>
#include <array>

namespace wisp::text {

namespace {

constexpr std::array<std::string_view, 34> kEndTexts = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
    "<|plamo:eos|>",
};

}  // namespace

bool is_end_text(std::string_view text) {
  return std::find(kEndTexts.begin(), kEndTexts.end(), text) != kEndTexts.end();
}

std::vector<int32_t> choose_end_ids(std::span<const EndToken> candidates) {
  const auto has = [&](std::string_view text) {
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const EndToken& token) { return token.text == text; });
  };
  // In the harmony format <|end|> ends a message, not the turn.
  const bool end_is_inner =
      (has("<|return|>") && has("<|call|>")) || (has("<|calls|>") && has("<|flush|>"));
  // Gemma 4 and PLaMo keep an ordinary </s>.
  const bool s_is_ordinary = has("<|tool_response>") || has("<|plamo:eos|>");
  std::vector<int32_t> ids;
  for (const EndToken& token : candidates) {
    if (token.text == "<|end|>" && end_is_inner) continue;
    if (token.text == "</s>" && s_is_ordinary) continue;
    ids.push_back(token.id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace wisp::text
