// Tokens to text while they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace wisp::text {

struct StreamOptions {
  std::vector<std::string> stop = {};  // texts that end the output; empty ones are ignored
  bool skip_special = true;            // special tokens give no text
  bool strip_first_space = false;      // drop one space from the very start
};

// Releases text as soon as it is certain: never part of a character, never what may turn out to be
// the start of a stop text. All released texts together are what decoding the whole gives, up to
// the first stop text. Bytes that are not UTF-8 become U+FFFD as with Python's errors="replace".
class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, StreamOptions options = {});

  // The text that this token makes certain; empty after a stop text was seen.
  std::string push(int32_t id);
  // The same for bytes that belong to no token.
  std::string push_bytes(std::string_view bytes);
  // What was still held back. Nothing may be pushed afterwards.
  std::string finish();
  // Which stop text ended the output, as an index into the options; it is not part of the output.
  std::optional<size_t> stopped() const { return stopped_; }

 private:
  std::string release(bool last);

  const Tokenizer* tokenizer_;
  StreamOptions options_;
  std::string bytes_;  // the start of a character
  std::string text_;   // may hold the start of a stop text
  bool at_start_ = true;
  std::optional<size_t> stopped_;
};

}  // namespace wisp::text
