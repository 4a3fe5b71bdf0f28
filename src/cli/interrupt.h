// Ctrl-C as a question that the program asks instead of its end.
#pragma once

#include <csignal>

namespace wisp::cli {

// While it lives, the first Ctrl-C only sets a flag and ends a wait_for_input. A second one before
// clear() ends the program. One at a time. Throws wisp::Error when the system gives no pipe.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
  void clear();

  // Waits until a read of the file descriptor would not block. False when Ctrl-C came, before the
  // call or during it.
  bool wait_for_input(int file) const;

 private:
  struct sigaction previous_ {};
};

}  // namespace wisp::cli
