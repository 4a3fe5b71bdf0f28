#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error.h"
#include "text/utf8.h"

namespace wisp::cli {

namespace {

[[noreturn]] void fail_to_write() {
  const int reason = errno;
  if (reason == EPIPE) throw BrokenPipe{};
  fail("standard output: cannot write: {}", std::strerror(reason));
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_to_write();
}

void flush() {
  if (std::fflush(stdout) != 0) fail_to_write();
}

void note(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string one_line(std::string_view text) {
  std::string line;
  text::append_utf8(text, true, line);
  bool after_c2 = false;  // 0xC2 begins U+0080 to U+009F, which are control characters too
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte < 0x20 || byte == 0x7F) line[i] = ' ';
    if (after_c2 && byte < 0xA0) line.replace(i - 1, 2, "  ");
    after_c2 = byte == 0xC2;
  }
  return line;
}

void open_closed_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Opened the wrong way, so that its use still fails.
    const int flags = file == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    [[maybe_unused]] const int opened = open("/dev/null", flags);
  }
}

bool stdin_is_terminal() { return isatty(STDIN_FILENO) == 1; }
bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace wisp::cli
