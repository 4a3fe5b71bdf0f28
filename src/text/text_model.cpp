#include "text/text_model.h"

#include <filesystem>
#include <utility>

#include "base/error.h"

namespace wisp::text {

TextModel::TextModel(Tokenizer tokenizer, std::string name)
    : tokenizer_(std::move(tokenizer)), name_(std::move(name)) {}

TextModel TextModel::open(const formats::Checkpoint& checkpoint) {
  if (checkpoint.kind() == formats::CheckpointKind::huggingface) {
    return open_folder(checkpoint.folder());
  }
  return from_gguf(checkpoint.metadata(), checkpoint.path().string());
}

TextModel TextModel::open_folder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    fail("{}: no tokenizer.json, so text cannot be read or written", folder.string());
  }
  TextModel model(Tokenizer::from_json_file(file), folder.string());
  try {
    model.chat_template_ =
        ChatTemplate::from_folder(folder, model.token_text(model.tokenizer_.bos_id()),
                                  model.token_text(model.tokenizer_.eos_id()));
  } catch (const Error& error) {
    model.template_error_ = error.what();
  }
  return model;
}

TextModel TextModel::from_gguf(const formats::Metadata& metadata, std::string name) {
  return with_context(name, [&] {
    TextModel model(Tokenizer::from_gguf(metadata), name);
    try {
      model.chat_template_ =
          ChatTemplate::from_gguf(metadata, model.token_text(model.tokenizer_.bos_id()),
                                  model.token_text(model.tokenizer_.eos_id()));
    } catch (const Error& error) {
      model.template_error_ = error.what();
    }
    return model;
  });
}

std::string TextModel::token_text(std::optional<int32_t> id) const {
  return id ? std::string(tokenizer_.token_bytes(*id)) : std::string();
}

const ChatTemplate& TextModel::chat_template() const {
  if (!template_error_.empty()) fail("{}: {}", name_, template_error_);
  if (!chat_template_) {
    fail("{}: the model has no chat template; give one, or use raw text", name_);
  }
  return *chat_template_;
}

void TextModel::set_chat_template(std::string_view source) {
  chat_template_.emplace(source, token_text(tokenizer_.bos_id()), token_text(tokenizer_.eos_id()));
  template_error_.clear();
}

std::vector<int32_t> TextModel::encode_chat(std::span<const ChatMessage> messages,
                                            const ChatOptions& options) const {
  return tokenizer_.encode_prompt(chat_template().render(messages, options));
}

}  // namespace wisp::text
