// A model's chat template: messages to the text that the model was trained on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/metadata.h"

struct TextRsTemplate;

namespace wisp::text {

struct ChatMessage {
  std::string role;     // system, user, assistant, tool, or what else the template knows
  std::string content;  // UTF-8
  // A JSON object whose fields are added to the message, or replace its role and content:
  // tool_calls, name, reasoning_content, a content of several parts. Empty: none.
  std::string extra_json = {};
};

struct ChatOptions {
  bool add_generation_prompt = true;  // end with the start of the assistant's answer
  // A JSON object of further template variables: tools, documents, enable_thinking. Empty: none.
  std::string variables_json = {};
  std::string variant = {};  // a named template such as "tool_use"; empty: the default one
  int64_t now = -1;          // what strftime_now shows, seconds since 1970; -1: the present
};

// Jinja templates in the environment that transformers gives them: trim_blocks, lstrip_blocks,
// break and continue, Python's methods on values, tojson with Python's spacing, raise_exception,
// strftime_now, {% generation %}. Immutable: any thread may render.
class ChatTemplate {
 public:
  // Throws Error with the line when the source is not a template that can be run.
  ChatTemplate(std::string_view source, std::string bos_token, std::string eos_token);
  // The template and its named variants, by name; "" is the default one.
  ChatTemplate(const std::map<std::string, std::string>& sources, std::string bos_token,
               std::string eos_token);

  // nullopt when there is no template: wisp never guesses one. The keys tokenizer.chat_template and
  // tokenizer.chat_template.<name>.
  static std::optional<ChatTemplate> from_gguf(const formats::Metadata& metadata,
                                               std::string bos_token, std::string eos_token);
  // chat_template.jinja, additional_chat_templates/*.jinja, chat_template.json, else the text or
  // the list in tokenizer_config.json.
  static std::optional<ChatTemplate> from_folder(const std::filesystem::path& folder,
                                                 std::string bos_token, std::string eos_token);

  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Throws Error: with what the template itself raises, when it uses something undefined, or when
  // it does not end.
  std::string render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  std::vector<std::string> variants() const;

 private:
  struct Free {
    void operator()(TextRsTemplate* chat_template) const;
  };

  std::map<std::string, std::unique_ptr<TextRsTemplate, Free>> templates_;
  std::string bos_token_;
  std::string eos_token_;
};

}  // namespace wisp::text
