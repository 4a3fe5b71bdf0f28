// Tokenizers from GGUF metadata.
#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "text/end_tokens.h"
#include "text/tokenizer_handle.h"

namespace wisp::text {

namespace {

using formats::Metadata;

// ggml's token types.
constexpr int32_t kNormal = 1;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

// What the kind of vocabulary says where the file says nothing; -1: no such token.
struct Defaults {
  std::string_view model;
  int32_t bos, eos, unknown;
  bool add_bos, add_eos, add_space_prefix;
};

constexpr std::array<Defaults, 6> kDefaults = {{
    {"gpt2", -1, -1, -1, false, false, false},
    {"gemma4", -1, -1, -1, true, false, false},
    {"llama", 1, 2, 0, true, false, true},
    {"bert", 101, 102, 100, true, true, false},
    {"t5", -1, 1, 2, false, true, false},
    {"rwkv", -1, -1, -1, false, false, false},
}};

const Defaults& defaults_of(std::string_view model) {
  for (const Defaults& row : kDefaults) {
    if (row.model == model) return row;
  }
  fail("tokenizer.ggml.model: '{}' is not supported (known: gpt2, gemma4, llama, bert, t5, rwkv)",
       model);
}

std::string string_or_empty(const Metadata& metadata, std::string_view key) {
  const std::string* value = metadata.find_string(key);
  return value == nullptr ? std::string() : *value;
}

// The token id under the first of `keys` that the file has; all bits set means none.
std::optional<int32_t> read_id(const Metadata& metadata, std::span<const std::string_view> keys,
                               int32_t otherwise, size_t count) {
  for (const std::string_view key : keys) {
    const std::optional<int64_t> id = metadata.get_int(key);
    if (!id) continue;
    if (*id == -1 || *id == std::numeric_limits<uint32_t>::max()) return std::nullopt;
    if (*id < 0 || static_cast<uint64_t>(*id) >= count) {
      fail("{}: token {} is out of range, the vocabulary has {}", key, *id, count);
    }
    return static_cast<int32_t>(*id);
  }
  if (otherwise < 0 || static_cast<size_t>(otherwise) >= count) return std::nullopt;
  return otherwise;
}

std::vector<TextRsBytes> views(const std::vector<std::string>* texts) {
  std::vector<TextRsBytes> result;
  if (texts == nullptr) return result;
  result.reserve(texts->size());
  for (const std::string& text : *texts) result.push_back(to_rust(text));
  return result;
}

// Reads an array that has an entry for each token; `otherwise` where it is missing.
template <typename T, typename Source>
std::vector<T> per_token(const std::vector<Source>* values, std::string_view key, size_t count) {
  std::vector<T> result;
  if (values == nullptr) return result;
  if (values->size() < count) {
    fail("{}: {} entries for {} tokens", key, values->size(), count);
  }
  result.assign(values->begin(), values->begin() + static_cast<std::ptrdiff_t>(count));
  return result;
}

std::vector<float> read_scores(const Metadata& metadata, size_t count) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  const auto found = metadata.values().find(kKey);
  if (found == metadata.values().end()) return {};
  if (std::holds_alternative<std::vector<int64_t>>(found->second)) {
    return per_token<float>(metadata.find_ints(kKey), kKey, count);
  }
  return per_token<float>(metadata.find_floats(kKey), kKey, count);
}

std::string read_charsmap(const Metadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  std::string bytes;
  if (const std::vector<int64_t>* values = metadata.find_ints(kKey)) {
    bytes.reserve(values->size());
    for (const int64_t value : *values) bytes.push_back(static_cast<char>(value));
  }
  return bytes;
}

// Whether merging text gives this token, which makes it ordinary text whatever it looks like:
// Qwen's
// </s> is one.
bool made_by_merge(const std::vector<std::string>* merges, std::string_view text) {
  if (merges == nullptr) return false;
  return std::any_of(merges->begin(), merges->end(), [&](const std::string& merge) {
    if (merge.size() != text.size() + 1) return false;
    const size_t space = merge.find(' ', 1);
    return space != std::string::npos && text.substr(0, space) == merge.substr(0, space) &&
           text.substr(space) == merge.substr(space + 1);
  });
}

bool name_contains(std::string name, std::string_view part) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find(part) != std::string::npos;
}

// Attributes that GGUF does not store and that are known by the model's name: phi-3's special
// tokens swallow the white space behind them, some masks that in front of them.
void set_strips(const Metadata& metadata, const std::vector<std::string>& tokens,
                TextRsVocab& vocab) {
  const std::string name = string_or_empty(metadata, "general.name");
  vocab.special_rstrip = name_contains(name, "phi-3") || name_contains(name, "phi3");
  const std::string pre = string_or_empty(metadata, "tokenizer.ggml.pre");
  const std::string arch = string_or_empty(metadata, "general.architecture");
  std::string_view mask;
  if (pre.starts_with("jina-v2-") || arch == "nomic-bert-moe" || arch == "jina-bert-v3") {
    mask = "<mask>";
  } else if (name_contains(name, "modern-bert")) {
    mask = "[MASK]";
  }
  vocab.mask_lstrip = -1;
  const auto found = std::find(tokens.begin(), tokens.end(), mask);
  if (!mask.empty() && found != tokens.end()) {
    vocab.mask_lstrip = static_cast<int32_t>(found - tokens.begin());
  }
}

}  // namespace

Tokenizer Tokenizer::from_gguf(const Metadata& metadata) {
  const std::string model = string_or_empty(metadata, "tokenizer.ggml.model");
  if (model.empty()) fail("no tokenizer: the key tokenizer.ggml.model is missing");
  const Defaults& defaults = defaults_of(model);
  const std::string pre = string_or_empty(metadata, "tokenizer.ggml.pre");
  const std::vector<std::string>* tokens = metadata.find_strings(kTokensKey);
  if (tokens == nullptr || tokens->empty()) fail("the key {} is missing or empty", kTokensKey);
  const size_t count = tokens->size();
  if (count > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    fail("{}: {} entries", kTokensKey, count);
  }

  using Keys = std::array<std::string_view, 2>;
  const auto id = [&](Keys keys, int32_t otherwise) {
    return read_id(metadata, keys, otherwise, count);
  };
  const bool bert = model == "bert";
  const std::optional<int32_t> bos =
      id({"tokenizer.ggml.bos_token_id", "tokenizer.ggml.cls_token_id"}, defaults.bos);
  const std::optional<int32_t> eos =
      bert ? id({"tokenizer.ggml.seperator_token_id", "tokenizer.ggml.eos_token_id"}, defaults.eos)
           : id({"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eos_token_id"}, defaults.eos);
  const std::optional<int32_t> unknown =
      id({"tokenizer.ggml.unknown_token_id", "tokenizer.ggml.unknown_token_id"}, defaults.unknown);

  std::vector<int32_t> types = per_token<int32_t>(metadata.find_ints("tokenizer.ggml.token_type"),
                                                  "tokenizer.ggml.token_type", count);
  if (types.empty()) {
    types.assign(count, kNormal);
    for (const std::optional<int32_t>& special : {bos, eos, unknown}) {
      if (special) types[static_cast<size_t>(*special)] = kControl;
    }
  }
  const std::vector<std::string>* merges = metadata.find_strings("tokenizer.ggml.merges");
  std::vector<EndToken> ends;
  for (const std::string_view key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
        "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
        "tokenizer.ggml.fim_sep_token_id"}) {
    if (const auto end = id({key, key}, -1)) {
      ends.push_back({*end, (*tokens)[static_cast<size_t>(*end)]});
    }
  }
  if (eos) ends.push_back({*eos, (*tokens)[static_cast<size_t>(*eos)]});
  for (size_t i = 0; i < count; ++i) {
    const std::string& text = (*tokens)[i];
    if (!is_end_text(text)) continue;
    if (types[i] == kNormal && made_by_merge(merges, text)) continue;
    if (types[i] == kUserDefined && text == "</s>") continue;  // Gemma's is the HTML tag
    ends.push_back({static_cast<int32_t>(i), text});
  }
  const std::vector<int32_t> end_ids = choose_end_ids(ends);
  // Some files give them the type of ordinary text.
  for (const int32_t end : end_ids) types[static_cast<size_t>(end)] = kControl;

  const std::vector<float> scores = read_scores(metadata, count);
  const std::vector<TextRsBytes> token_views = views(tokens);
  const std::vector<TextRsBytes> merge_views = views(merges);
  const std::string charsmap = read_charsmap(metadata);
  if ((model == "gpt2" || model == "gemma4") && merges == nullptr) {
    fail("the key tokenizer.ggml.merges is missing");
  }

  TextRsVocab vocab = {};
  vocab.model = to_rust(model);
  vocab.pre = to_rust(pre);
  vocab.tokens = token_views.data();
  vocab.scores = scores.empty() ? nullptr : scores.data();
  vocab.types = types.data();
  vocab.token_count = count;
  vocab.merges = merge_views.data();
  vocab.merge_count = merge_views.size();
  vocab.charsmap = to_rust(charsmap);
  vocab.unknown_id = unknown.value_or(-1);
  vocab.add_space_prefix =
      metadata.get_bool("tokenizer.ggml.add_space_prefix").value_or(defaults.add_space_prefix);
  vocab.remove_extra_whitespaces =
      metadata.get_bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  vocab.lowercase = metadata.get_bool("tokenizer.ggml.normalizer.lowercase").value_or(true);
  vocab.strip_accents =
      metadata.get_bool("tokenizer.ggml.normalizer.strip_accents").value_or(vocab.lowercase);
  set_strips(metadata, *tokens, vocab);

  auto handle = std::make_unique<Handle>();
  with_context("tokenizer.ggml",
               [&] { check_rust(text_rs_tokenizer_from_vocab(&vocab, &handle->rust)); });
  Tokenizer tokenizer(std::move(handle));
  const TextRsPreKind kind = text_rs_pre_kind(to_rust(model == "gemma4" ? model : pre));
  bool add_bos = defaults.add_bos || (model == "gpt2" && kind.add_bos);
  // Files of Gemma 4 say false where the model wants it.
  const bool forced = model == "gemma4" || pre == "gemma4" || pre == "granite-embed-multi-311m";
  if (!forced) add_bos = metadata.get_bool("tokenizer.ggml.add_bos_token").value_or(add_bos);
  const bool add_eos =
      bert || metadata.get_bool("tokenizer.ggml.add_eos_token").value_or(defaults.add_eos);
  tokenizer.special_ = {.bos = bos, .eos = eos, .end = end_ids, .prefix = {}, .suffix = {}};
  if ((add_bos || bert) && bos) tokenizer.special_.prefix = {*bos};
  if (add_eos && eos) tokenizer.special_.suffix = {*eos};
  return tokenizer;
}

}  // namespace wisp::text
