// The Rust object behind a Tokenizer. Internal.
#pragma once

#include "text/rust.h"
#include "text/tokenizer.h"

namespace wisp::text {

struct Tokenizer::Handle {
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { text_rs_tokenizer_free(rust); }

  TextRsTokenizer* rust = nullptr;
};

}  // namespace wisp::text
