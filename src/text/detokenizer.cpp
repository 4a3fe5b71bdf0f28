#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace wisp::text {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, StreamOptions options)
    : tokenizer_(&tokenizer), options_(std::move(options)) {}

std::string StreamDecoder::push(int32_t id) {
  if (options_.skip_special && tokenizer_->is_special(id)) return {};
  return push_bytes(tokenizer_->token_bytes(id));
}

std::string StreamDecoder::push_bytes(std::string_view bytes) {
  if (stopped_) return {};
  bytes_ += bytes;
  bytes_.erase(0, append_utf8(bytes_, false, text_));
  return release(false);
}

std::string StreamDecoder::finish() {
  if (stopped_) return {};
  append_utf8(bytes_, true, text_);
  bytes_.clear();
  return release(true);
}

std::string StreamDecoder::release(bool last) {
  if (at_start_ && !text_.empty()) {
    if (options_.strip_first_space && text_.front() == ' ') text_.erase(0, 1);
    at_start_ = false;
  }
  // Of several stop texts the one that is complete first counts, so that it does not matter how
  // the text was cut into tokens; of those the one that starts first.
  size_t end = text_.size();
  size_t complete = std::string::npos;
  for (size_t i = 0; i < options_.stop.size(); ++i) {
    const std::string& stop = options_.stop[i];
    if (stop.empty()) continue;
    const size_t found = text_.find(stop);
    if (found == std::string::npos) continue;
    if (found + stop.size() < complete || (found + stop.size() == complete && found < end)) {
      complete = found + stop.size();
      end = found;
      stopped_ = i;
    }
  }
  size_t keep = 0;  // the longest end of the text that starts a stop text
  if (!stopped_ && !last) {
    for (const std::string& stop : options_.stop) {
      for (size_t size = std::min(stop.size(), text_.size() + 1); size-- > keep + 1;) {
        if (text_.ends_with(std::string_view(stop).substr(0, size))) keep = size;
      }
    }
    end -= keep;
  }
  std::string released = text_.substr(0, end);
  if (stopped_) {
    text_.clear();
    bytes_.clear();
  } else {
    text_.erase(0, end);
  }
  return released;
}

}  // namespace wisp::text
