// Ctrl-C as a question that the program asks instead of its end.
#pragma once

#include <csignal>

namespace wisp::cli {

// While it lives, the first Ctrl-C only sets a flag, and makes a waiting poll return early. A
// second one before clear() ends the program. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
  void clear();

 private:
  struct sigaction previous_ {};
};

}  // namespace wisp::cli
