#include "text/chat_template.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "formats/json.h"
#include "text/rust.h"

namespace wisp::text {

namespace {

using json = nlohmann::ordered_json;

using Sources = std::map<std::string, std::string>;

json parse_object(const std::string& text, std::string_view what) {
  return formats::parse_json_object<json>(text, fmt::format("chat template: {}", what));
}

json to_json(const ChatMessage& message) {
  json value = {{"role", message.role}, {"content", message.content}};
  if (!message.extra_json.empty()) {
    value.update(parse_object(message.extra_json, "message"));
  }
  return value;
}

// chat_template in a JSON file is one text or a list of {name, template}.
Sources read_sources(const std::filesystem::path& path) {
  Sources sources;
  if (!std::filesystem::exists(path)) return sources;
  const auto config = formats::read_json_object<json>(path);
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return sources;
  if (found->is_string()) {
    sources[""] = found->get<std::string>();
    return sources;
  }
  const auto bad = [&] { fail("{}: chat_template: expected a text or a list", path.string()); };
  if (!found->is_array()) bad();
  for (const json& entry : *found) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template")) bad();
    if (!entry["name"].is_string() || !entry["template"].is_string()) bad();
    const auto name = entry["name"].get<std::string>();
    sources[name == "default" ? "" : name] = entry["template"].get<std::string>();
  }
  return sources;
}

}  // namespace

void ChatTemplate::Free::operator()(TextRsTemplate* chat_template) const {
  text_rs_template_free(chat_template);
}

ChatTemplate::ChatTemplate(std::string_view source, std::string bos_token, std::string eos_token)
    : ChatTemplate(Sources{{"", std::string(source)}}, std::move(bos_token), std::move(eos_token)) {
}

ChatTemplate::ChatTemplate(const Sources& sources, std::string bos_token, std::string eos_token)
    : bos_token_(std::move(bos_token)), eos_token_(std::move(eos_token)) {
  for (const auto& entry : sources) {
    const std::string& name = entry.first;
    with_context(name.empty() ? "chat template" : fmt::format("chat template '{}'", name), [&] {
      TextRsTemplate* parsed = nullptr;
      check_rust(text_rs_template_new(to_rust(entry.second), &parsed));
      templates_[name].reset(parsed);
    });
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::optional<ChatTemplate> ChatTemplate::from_gguf(const formats::Metadata& metadata,
                                                    std::string bos_token, std::string eos_token) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  Sources sources;
  for (const auto& [key, value] : metadata.values()) {
    if (!key.starts_with(kKey)) continue;
    if (key.size() > kKey.size() && key[kKey.size()] != '.') continue;
    const std::string* source = metadata.find_string(key);
    const std::string name = key.size() > kKey.size() ? key.substr(kKey.size() + 1) : "";
    sources[name == "default" ? "" : name] = *source;
  }
  if (sources.empty()) return std::nullopt;
  return ChatTemplate(sources, std::move(bos_token), std::move(eos_token));
}

std::optional<ChatTemplate> ChatTemplate::from_folder(const std::filesystem::path& folder,
                                                      std::string bos_token,
                                                      std::string eos_token) {
  Sources sources = read_sources(folder / "tokenizer_config.json");
  for (auto& [name, source] : read_sources(folder / "chat_template.json")) sources[name] = source;
  const std::filesystem::path single = folder / "chat_template.jinja";
  if (std::filesystem::exists(single)) sources[""] = read_text(single, size_t{64} << 20);
  const std::filesystem::path named = folder / "additional_chat_templates";
  if (std::filesystem::is_directory(named)) {
    for (const auto& entry : std::filesystem::directory_iterator(named)) {
      if (entry.path().extension() != ".jinja") continue;
      sources[entry.path().stem().string()] = read_text(entry.path(), size_t{64} << 20);
    }
  }
  if (sources.empty()) return std::nullopt;
  return ChatTemplate(sources, std::move(bos_token), std::move(eos_token));
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 const ChatOptions& options) const {
  const auto found = templates_.find(options.variant == "default" ? "" : options.variant);
  if (found == templates_.end()) {
    std::string known;
    for (const auto& [name, parsed] : templates_) {
      known += (known.empty() ? "" : ", ") + (name.empty() ? "default" : name);
    }
    fail("the model has no chat template '{}' (it has: {})",
         options.variant.empty() ? "default" : options.variant, known);
  }
  json variables = options.variables_json.empty()
                       ? json::object()
                       : parse_object(options.variables_json, "variables");
  json list = json::array();
  for (const ChatMessage& message : messages) list.push_back(to_json(message));
  variables["messages"] = std::move(list);
  variables["add_generation_prompt"] = options.add_generation_prompt;
  variables["bos_token"] = bos_token_;
  variables["eos_token"] = eos_token_;
  const std::string text =
      variables.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
  char* rendered = nullptr;
  size_t size = 0;
  with_context("chat template", [&] {
    check_rust(
        text_rs_template_render(found->second.get(), to_rust(text), options.now, &rendered, &size));
  });
  const auto release = [size](char* data) { text_rs_free_text(data, size); };
  const std::unique_ptr<char, decltype(release)> owner(rendered, release);
  return std::string(rendered, size);
}

std::vector<std::string> ChatTemplate::variants() const {
  std::vector<std::string> names;
  for (const auto& [name, parsed] : templates_) names.push_back(name.empty() ? "default" : name);
  return names;
}

}  // namespace wisp::text
