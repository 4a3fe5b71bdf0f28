// Small vocabularies in GGUF's form.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/metadata.h"

namespace wisp::text {

enum TokenType : int64_t {
  kNormalToken = 1,
  kUnknownToken,
  kControlToken,
  kUserToken,
  kUnusedToken,
  kByteToken
};

// Collects the tokens of a vocabulary, then the metadata of a file that has it.
class TinyVocab {
 public:
  explicit TinyVocab(std::string model) { metadata_.set("tokenizer.ggml.model", std::move(model)); }

  int32_t add(std::string text, TokenType type = kNormalToken, double score = 0) {
    tokens_.push_back(std::move(text));
    types_.push_back(type);
    scores_.push_back(score);
    return static_cast<int32_t>(tokens_.size() - 1);
  }
  // Adds the token `left right` makes, and the merge.
  int32_t merge(const std::string& left, const std::string& right) {
    merges_.push_back(left + " " + right);
    return add(left + right);
  }
  void add_merge(std::string merge) { merges_.push_back(std::move(merge)); }
  void set(std::string key, formats::MetadataValue value) {
    metadata_.set(std::move(key), std::move(value));
  }

  formats::Metadata metadata() const {
    formats::Metadata result = metadata_;
    const auto set_missing = [&](const char* key, formats::MetadataValue value) {
      if (!result.contains(key)) result.set(key, std::move(value));
    };
    set_missing("tokenizer.ggml.tokens", tokens_);
    set_missing("tokenizer.ggml.token_type", types_);
    set_missing("tokenizer.ggml.scores", scores_);
    if (!merges_.empty()) set_missing("tokenizer.ggml.merges", merges_);
    return result;
  }

 private:
  formats::Metadata metadata_;
  std::vector<std::string> tokens_;
  std::vector<int64_t> types_;
  std::vector<double> scores_;
  std::vector<std::string> merges_;
};

// GPT-2's letter for a byte.
inline std::string byte_letter(int byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// The vocabulary of tests/data/text/bpe: three control tokens (0 <|start|>, 1 <|im_start|>,
// 2 <|im_end|>), the 256 byte letters from 3 on, then merges for "hello world" and a few others.
inline TinyVocab tiny_bpe(std::string pre = "smollm") {
  TinyVocab vocab("gpt2");
  vocab.set("tokenizer.ggml.pre", std::move(pre));
  for (const char* text : {"<|start|>", "<|im_start|>", "<|im_end|>"}) {
    vocab.add(text, kControlToken);
  }
  for (int byte = 0; byte < 256; ++byte) vocab.add(byte_letter(byte));
  const std::string space = byte_letter(' ');
  vocab.merge("h", "e");                                                  // 259
  vocab.merge("l", "l");                                                  // 260
  vocab.merge("he", "ll");                                                // 261
  vocab.merge("hell", "o");                                               // 262
  vocab.merge(space, "w");                                                // 263
  vocab.merge("o", "r");                                                  // 264
  vocab.merge(space + "w", "or");                                         // 265
  vocab.merge("l", "d");                                                  // 266
  vocab.merge(space + "wor", "ld");                                       // 267
  vocab.merge(space, space);                                              // 268
  vocab.merge(space + space, space + space);                              // 269
  vocab.merge(byte_letter(0xC3), byte_letter(0xA9));                      // 270: é
  vocab.merge(byte_letter(0xF0), byte_letter(0x9F));                      // 271
  vocab.merge(byte_letter(0xF0) + byte_letter(0x9F), byte_letter(0x98));  // 272
  vocab.merge("1", "2");                                                  // 273
  vocab.add("<tool>", kUserToken);                                        // 274
  vocab.set("tokenizer.ggml.bos_token_id", int64_t{0});
  vocab.set("tokenizer.ggml.eos_token_id", int64_t{2});
  vocab.set("tokenizer.ggml.add_bos_token", true);
  return vocab;
}

// SentencePiece's kind: <unk>, <s>, </s>, 256 byte tokens from 3 on, pieces with scores.
inline TinyVocab tiny_spm() {
  TinyVocab vocab("llama");
  vocab.add("<unk>", kUnknownToken);
  vocab.add("<s>", kControlToken);
  vocab.add("</s>", kControlToken);
  const char* hex = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    vocab.add(std::string("<0x") + hex[byte >> 4] + hex[byte & 15] + ">", kByteToken);
  }
  double score = -10;
  const std::string space = "\xE2\x96\x81";
  for (const std::string& piece :
       {space, std::string("h"), std::string("e"), std::string("l"), std::string("o")}) {
    vocab.add(piece, kNormalToken, score -= 1);  // 259 to 263
  }
  vocab.add(space + "h", kNormalToken, -1);      // 264
  vocab.add("el", kNormalToken, -2);             // 265
  vocab.add(space + "hel", kNormalToken, -3);    // 266
  vocab.add("lo", kNormalToken, -4);             // 267
  vocab.add(space + "hello", kNormalToken, -5);  // 268
  vocab.add(space + space, kNormalToken, -6);    // 269
  vocab.add("\n\n", kUserToken, 0);              // 270
  return vocab;
}

}  // namespace wisp::text
