// Fields of published configs that nobody reads, because the forward is the same with and without.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "formats/metadata.h"

namespace wisp::model {

// What a field that no reader asked for means.
enum class Unread : uint8_t {
  harmless,  // known to change nothing, with this value
  refused,   // known, but another value than the one wisp computes with
  unknown,
};

// Of a field of config.json, `key` being the last part of its name. A null is harmless: it stands
// for a field that is absent.
Unread unread_hf(std::string_view key, const nlohmann::json& value);

// Of a GGUF key without its architecture. Where the key is not known, zero, false and an empty list
// are harmless: writers that store all they know store these for "none".
Unread unread_gguf(std::string_view key, const formats::MetadataValue& value);

}  // namespace wisp::model
