// How the text layer calls the Rust library: owned results and messages as errors. Internal.
#pragma once

#include <text_rs.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace wisp::text {

inline TextRsBytes to_rust(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
inline std::string_view from_rust(TextRsBytes bytes) { return {bytes.data, bytes.size}; }

// Throws Error with the message that a call returned, if any; frees it.
inline void check_rust(char* message) {
  if (message == nullptr) return;
  const std::string text = message;
  text_rs_free_message(message);
  throw Error(text);
}

}  // namespace wisp::text
