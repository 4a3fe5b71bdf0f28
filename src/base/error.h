// Errors: one exception type whose message is one line, from the outermost context to the cause.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace wisp {

// Thrown by loading, creation and wrong input. what() is a single line that says what, where,
// expected and found, such as "model.gguf: tensor 'blk.0.attn_q.weight': expected shape [64, 64],
// found [64, 32]".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  // Throws a copy of this error with "context: " put before its message.
  [[noreturn]] void rethrow_in(std::string_view context) const;
};

// Throws Error with a message formatted by {fmt}.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// Runs `body`; an Error that leaves it gains `context` in front.
template <typename Body>
decltype(auto) with_context(std::string_view context, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    error.rethrow_in(context);
  }
}

// A broken promise of our own code (never of input): throws std::logic_error naming the place.
[[noreturn]] void fail_promise(std::string_view what);
inline void ensure(bool condition, std::string_view what) {
  if (!condition) fail_promise(what);
}

}  // namespace wisp
