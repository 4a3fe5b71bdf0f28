// The text side of a checkpoint: its tokenizer and its chat template.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace wisp::text {

// Owns what it holds; the checkpoint may be closed afterwards. Immutable: any thread may use it.
class TextModel {
 public:
  // From GGUF metadata or from the files of a Hugging Face folder. Throws one clear Error when
  // there is no tokenizer. A missing or broken chat template is an error only when it is used.
  static TextModel open(const formats::Checkpoint& checkpoint);
  // The same for a folder that needs no weights.
  static TextModel open_folder(const std::filesystem::path& folder);
  static TextModel from_gguf(const formats::Metadata& metadata, std::string name);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  bool has_chat_template() const { return chat_template_.has_value(); }
  // Throws Error naming the model when it has no template, or with what is wrong with it.
  const ChatTemplate& chat_template() const;
  // Replaces the template by one that the user gives.
  void set_chat_template(std::string_view source);

  // The ids of a chat, ready to be answered: the rendered text with its special tokens and exactly
  // one BOS where the model wants it.
  std::vector<int32_t> encode_chat(std::span<const ChatMessage> messages,
                                   const ChatOptions& options = {}) const;

 private:
  TextModel(Tokenizer tokenizer, std::string name);
  std::string token_text(std::optional<int32_t> id) const;

  Tokenizer tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  std::string template_error_;
  std::string name_;
};

}  // namespace wisp::text
