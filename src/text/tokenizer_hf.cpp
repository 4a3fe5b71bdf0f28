// Tokenizers from Hugging Face folders.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "formats/json.h"
#include "text/end_tokens.h"
#include "text/tokenizer_handle.h"

namespace wisp::text {

namespace {

using nlohmann::json;

// An empty object when there is no such file.
json read_optional(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return json::object();
  return formats::read_json_object<json>(path);
}

// A special token in tokenizer_config.json is a text or an object with one.
std::string token_text(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && (*found)["content"].is_string()) {
    return (*found)["content"].get<std::string>();
  }
  return {};
}

// One id or a list of them; anything else is an error.
std::vector<int32_t> read_ids(const json& config, const char* key, size_t count,
                              const std::filesystem::path& path) {
  std::vector<int32_t> ids;
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return ids;
  const json list = found->is_array() ? *found : json::array({*found});
  for (const json& entry : list) {
    if (!entry.is_number_integer()) fail("{}: {}: expected token ids", path.string(), key);
    const auto id = entry.get<int64_t>();
    if (id < 0) continue;  // some files write -1 for none
    if (static_cast<uint64_t>(id) >= count) {
      fail("{}: {}: token {} is out of range, the vocabulary has {}", path.string(), key, id,
           count);
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::optional<bool> read_flag(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

std::vector<int32_t> take_ids(int32_t* ids, size_t count) {
  std::vector<int32_t> result(ids, ids + count);
  text_rs_free_ids(ids, count);
  return result;
}

// Puts `id` at the start or the end of `around`, or takes it away, as an explicit flag asks.
void apply_flag(std::optional<bool> flag, std::optional<int32_t> id, bool front,
                std::vector<int32_t>& around) {
  if (!flag || !id) return;
  const auto found = std::find(around.begin(), around.end(), *id);
  if (*flag && found == around.end()) {
    around.insert(front ? around.begin() : around.end(), *id);
  } else if (!*flag && found != around.end()) {
    around.erase(found);
  }
}

}  // namespace

Tokenizer Tokenizer::from_json_file(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  auto handle = std::make_unique<Handle>();
  with_context(path.string(), [&] {
    check_rust(text_rs_tokenizer_from_json(text.data(), text.size(), &handle->rust));
  });
  Tokenizer tokenizer(std::move(handle));
  int32_t *prefix = nullptr, *suffix = nullptr;
  size_t prefix_count = 0, suffix_count = 0;
  check_rust(
      text_rs_affixes(tokenizer.handle_->rust, &prefix, &prefix_count, &suffix, &suffix_count));
  Special& special = tokenizer.special_;
  special.prefix = take_ids(prefix, prefix_count);
  special.suffix = take_ids(suffix, suffix_count);

  const std::filesystem::path folder = path.parent_path();
  const size_t count = tokenizer.vocab_size();
  const json config = read_optional(folder / "tokenizer_config.json");
  if (const std::string bos = token_text(config, "bos_token"); !bos.empty()) {
    special.bos = tokenizer.find(bos);
  }
  if (const std::string eos = token_text(config, "eos_token"); !eos.empty()) {
    special.eos = tokenizer.find(eos);
  }

  std::vector<int32_t> ends;
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::filesystem::path file = folder / name;
    const json settings = read_optional(file);
    const auto text_config = settings.find("text_config");
    const bool nested = text_config != settings.end() && text_config->is_object();
    for (const json* part : {&settings, nested ? &*text_config : nullptr}) {
      if (part == nullptr) continue;
      const std::vector<int32_t> eos = read_ids(*part, "eos_token_id", count, file);
      ends.insert(ends.end(), eos.begin(), eos.end());
      if (!special.eos && !eos.empty()) special.eos = eos.front();
      const std::vector<int32_t> bos = read_ids(*part, "bos_token_id", count, file);
      if (!special.bos && !bos.empty()) special.bos = bos.front();
    }
  }
  if (special.eos) ends.push_back(*special.eos);

  std::vector<EndToken> candidates;
  candidates.reserve(ends.size());
  for (const int32_t id : ends) candidates.push_back({id, tokenizer.token_bytes(id)});
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<int32_t>(i);
    if (tokenizer.is_special(id) && is_end_text(tokenizer.token_bytes(id))) {
      candidates.push_back({id, tokenizer.token_bytes(id)});
    }
  }
  special.end = choose_end_ids(candidates);
  apply_flag(read_flag(config, "add_bos_token"), special.bos, true, special.prefix);
  apply_flag(read_flag(config, "add_eos_token"), special.eos, false, special.suffix);
  return tokenizer;
}

}  // namespace wisp::text
