#include "cli/interrupt.h"

namespace wisp::cli {

namespace {

// A signal handler can reach nothing but static state.
volatile std::sig_atomic_t& flag() {
  static volatile std::sig_atomic_t value = 0;
  return value;
}

void on_interrupt(int) { flag() = 1; }

void install() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  // A write goes on afterwards: no output is lost. Who waits for input waits in poll, which
  // returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  sigaction(SIGINT, nullptr, &previous_);
  clear();
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous_, nullptr); }

bool InterruptGuard::interrupted() const { return flag() != 0; }

void InterruptGuard::clear() {
  flag() = 0;
  install();
}

}  // namespace wisp::cli
