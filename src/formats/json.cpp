#include "formats/json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "formats/quoted.h"

namespace wisp::formats {
namespace {

// `text` with quotes around the numbers that JSON does not have, outside strings.
std::string quote_python_numbers(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kNumbers = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    std::string_view number;
    for (const std::string_view one : kNumbers) {
      if (!in_string && text.substr(i).starts_with(one)) number = one;
    }
    if (!number.empty()) {
      out.append("\"").append(number).append("\"");
      i += number.size();
      continue;
    }
    const bool escape = in_string && text[i] == '\\' && i + 1 < text.size();
    if (text[i] == '"') in_string = !in_string;
    out.append(text.substr(i, escape ? 2 : 1));
    i += escape ? 2 : 1;
  }
  return out;
}

}  // namespace

template <typename Json>
Json parse_json_object(std::string_view text, std::string_view what, JsonRules rules) {
  using Event = typename Json::parse_event_t;
  std::vector<std::set<std::string>> names;  // of the objects open now
  const auto check = [&](int depth, Event event, Json& value) {
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= rules.max_depth) fail("{} is nested too deeply", what);
      if (event == Event::object_start) names.emplace_back();
    } else if (event == Event::object_end) {
      names.pop_back();
    } else if (event == Event::key && rules.unique_names) {
      const auto& name = value.template get_ref<const std::string&>();
      if (!names.back().insert(name).second) fail("{}: {} appears twice", what, in_quotes(name));
    }
    return true;
  };
  std::string quoted;
  if (rules.python_numbers) text = quoted = quote_python_numbers(text);
  Json parsed;
  try {
    parsed = Json::parse(text.begin(), text.end(), check);
  } catch (const typename Json::parse_error& error) {
    fail("{} is not valid JSON: error at byte {} of {}", what, error.byte, text.size());
  } catch (const typename Json::exception&) {
    fail("{} is not valid JSON", what);
  }
  if (!parsed.is_object()) fail("{}: expected a JSON object, found {}", what, parsed.type_name());
  return parsed;
}

template <typename Json>
Json read_json_object(const std::filesystem::path& path, JsonRules rules) {
  return parse_json_object<Json>(read_text(path, size_t{64} << 20), path.string(), rules);
}

template nlohmann::json parse_json_object(std::string_view, std::string_view, JsonRules);
template nlohmann::ordered_json parse_json_object(std::string_view, std::string_view, JsonRules);
template nlohmann::json read_json_object(const std::filesystem::path&, JsonRules);
template nlohmann::ordered_json read_json_object(const std::filesystem::path&, JsonRules);

}  // namespace wisp::formats
