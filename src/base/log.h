// Logging to stderr. The level comes from --verbose or from WISP_LOG (error, warn, info, debug),
// the one environment variable that the program reads.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace wisp {

enum class LogLevel { error, warn, info, debug };

void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);
// Writes "wisp: level: message" as one line; safe from any thread.
void log_line(LogLevel level, std::string_view message);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace wisp
