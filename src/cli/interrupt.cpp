#include "cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace wisp::cli {

namespace {

// A signal handler can reach nothing but static state. The flag is a byte in a pipe, so that
// whoever waits for something else can wait for it too, whichever thread takes the signal.
struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe& flag() {
  static Pipe value;
  return value;
}

void on_interrupt(int) {
  const int saved = errno;
  [[maybe_unused]] const ssize_t written = write(flag().write_end, "", 1);
  errno = saved;
}

void install() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // a write that waits goes on
  sigaction(SIGINT, &action, nullptr);
}

bool readable(int file) {
  pollfd request = {.fd = file, .events = POLLIN, .revents = 0};
  return poll(&request, 1, 0) > 0;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
  for (const int end : ends) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
  flag() = {.read_end = ends[0], .write_end = ends[1]};
  sigaction(SIGINT, nullptr, &previous_);
  install();
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_, nullptr);
  close(flag().write_end);
  close(flag().read_end);
}

bool InterruptGuard::interrupted() const { return readable(flag().read_end); }

void InterruptGuard::clear() {
  char byte = 0;
  while (read(flag().read_end, &byte, 1) > 0) {
  }
  install();
}

bool InterruptGuard::wait_for_input(int file) const {
  std::array<pollfd, 2> requests = {{{.fd = flag().read_end, .events = POLLIN, .revents = 0},
                                     {.fd = file, .events = POLLIN, .revents = 0}}};
  while (poll(requests.data(), requests.size(), -1) < 0 && errno == EINTR) {
  }
  return requests[0].revents == 0;
}

}  // namespace wisp::cli
