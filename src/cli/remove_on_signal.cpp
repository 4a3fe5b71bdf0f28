#include "cli/remove_on_signal.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <utility>

#include "base/error.h"

namespace wisp::cli {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// A signal handler can reach nothing but static state.
std::atomic<const char*>& path_to_remove() {
  static std::atomic<const char*> path = nullptr;
  return path;
}

// The signal is blocked until the handler returns; then it ends the process as it would have.
void remove_and_end(int signal) {
  if (const char* path = path_to_remove().load()) unlink(path);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Replaces the action for a signal where it is `from`.
void replace_action(int signal, void (*from)(int), void (*to)(int)) {
  struct sigaction action {};
  if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != from) return;
  action.sa_handler = to;
  action.sa_flags = 0;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

RemoveOnSignal::RemoveOnSignal(std::string path) : path_(std::move(path)) {
  ensure(path_to_remove().load() == nullptr, "RemoveOnSignal: a second instance");
  path_to_remove() = path_.c_str();
  for (const int signal : kSignals) replace_action(signal, SIG_DFL, remove_and_end);
}

RemoveOnSignal::~RemoveOnSignal() {
  for (const int signal : kSignals) replace_action(signal, remove_and_end, SIG_DFL);
  path_to_remove() = nullptr;
}

}  // namespace wisp::cli
