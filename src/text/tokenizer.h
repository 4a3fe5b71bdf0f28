// Text to token ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/metadata.h"

namespace wisp::text {

// The vocabulary of a model with its rules. Immutable after loading: any thread may use it.
class Tokenizer {
 public:
  // Reads a tokenizer.json, and what lies beside it: tokenizer_config.json, generation_config.json,
  // config.json. Throws Error naming the file.
  static Tokenizer from_json_file(const std::filesystem::path& path);
  // Reads the keys tokenizer.ggml.*. Throws Error naming the key; a kind that is not supported is
  // refused by name.
  static Tokenizer from_gguf(const formats::Metadata& metadata);

  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // The ids of `text` (UTF-8; wrong bytes are read as U+FFFD). `add_special` puts BOS and EOS
  // around it where the model wants them. Only with `parse_special` do texts such as <|im_end|>
  // become special tokens: never set it for what a user typed.
  std::vector<int32_t> encode(std::string_view text, bool add_special, bool parse_special) const;
  // The ids of a whole prompt that may hold special tokens, such as a rendered chat: BOS in front
  // if the model wants it and the text does not start with it already; nothing behind.
  std::vector<int32_t> encode_prompt(std::string_view text) const;

  // The bytes that a token stands for: not always whole characters. Empty for an id without token.
  // Valid while the tokenizer lives.
  std::string_view token_bytes(int32_t id) const;
  // The text of all ids. Bytes that are not UTF-8 become U+FFFD. A space that encoding put in front
  // is dropped.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  size_t vocab_size() const;                                 // highest id + 1
  std::optional<int32_t> find(std::string_view text) const;  // the token written so
  bool is_special(int32_t id) const;
  std::optional<int32_t> bos_id() const { return special_.bos; }
  std::optional<int32_t> eos_id() const { return special_.eos; }
  // Sorted; generation ends at any of them.
  std::span<const int32_t> end_ids() const { return special_.end; }
  bool is_end(int32_t id) const;
  bool adds_bos() const;  // whether encode with add_special starts with BOS
  // Decoding a whole text drops one space from its start.
  bool strips_first_space() const;

 private:
  struct Handle;  // the Rust object
  // Ids with a meaning. `prefix` and `suffix` are what add_special puts around a text.
  struct Special {
    std::optional<int32_t> bos, eos;
    std::vector<int32_t> end, prefix, suffix;
  };

  explicit Tokenizer(std::unique_ptr<Handle> handle);

  std::unique_ptr<Handle> handle_;
  Special special_;
};

}  // namespace wisp::text
