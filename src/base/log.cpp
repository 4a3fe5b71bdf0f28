#include "base/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace wisp {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"error", "warn", "info", "debug"};

LogLevel level_from_environment() {
  const char* text = std::getenv("WISP_LOG");
  for (size_t i = 0; text != nullptr && i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<LogLevel>(i);
  }
  return LogLevel::warn;
}

std::atomic<LogLevel>& current_level() {
  static std::atomic<LogLevel> level = level_from_environment();
  return level;
}

}  // namespace

void set_log_level(LogLevel level) { current_level() = level; }

bool log_enabled(LogLevel level) { return level <= current_level().load(); }

void log_line(LogLevel level, std::string_view message) {
  const std::string line =
      fmt::format("wisp: {}: {}\n", kNames[static_cast<size_t>(level)], message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace wisp
