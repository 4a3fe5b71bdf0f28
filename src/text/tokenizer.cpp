#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "text/detokenizer.h"
#include "text/tokenizer_handle.h"

namespace wisp::text {

Tokenizer::Tokenizer(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special,
                                       bool parse_special) const {
  int32_t* ids = nullptr;
  size_t count = 0;
  with_context("cannot tokenize", [&] {
    check_rust(
        text_rs_encode(handle_->rust, text.data(), text.size(), parse_special, &ids, &count));
  });
  const auto release = [count](int32_t* data) { text_rs_free_ids(data, count); };
  const std::unique_ptr<int32_t, decltype(release)> owner(ids, release);
  std::vector<int32_t> result;
  if (add_special) result = special_.prefix;
  result.insert(result.end(), ids, ids + count);
  if (add_special) {
    result.insert(result.end(), special_.suffix.begin(), special_.suffix.end());
  }
  return result;
}

std::vector<int32_t> Tokenizer::encode_prompt(std::string_view text) const {
  std::vector<int32_t> ids = encode(text, false, true);
  if (adds_bos() && (ids.empty() || ids.front() != *special_.bos)) {
    ids.insert(ids.begin(), *special_.bos);
  }
  return ids;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  return from_rust(text_rs_token_bytes(handle_->rust, id));
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  StreamDecoder decoder(*this,
                        {.skip_special = skip_special, .strip_first_space = strips_first_space()});
  std::string text;
  for (const int32_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

size_t Tokenizer::vocab_size() const { return text_rs_vocab_size(handle_->rust); }

std::optional<int32_t> Tokenizer::find(std::string_view text) const {
  const int32_t id = text_rs_token_id(handle_->rust, to_rust(text));
  if (id < 0) return std::nullopt;
  return id;
}

bool Tokenizer::is_special(int32_t id) const { return text_rs_token_is_special(handle_->rust, id); }

bool Tokenizer::is_end(int32_t id) const {
  return std::binary_search(special_.end.begin(), special_.end.end(), id);
}

bool Tokenizer::adds_bos() const {
  return special_.bos && !special_.prefix.empty() && special_.prefix.front() == *special_.bos;
}

bool Tokenizer::strips_first_space() const { return text_rs_strips_first_space(handle_->rust); }

}  // namespace wisp::text
