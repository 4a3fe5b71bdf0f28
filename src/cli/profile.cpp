#include "cli/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace wisp::cli {
namespace {

std::string line(const backend::ProfileRow& row, const std::string& name, size_t width) {
  return fmt::format("{:<{}} {:>9} {:>12.1f} {:>10.2f}", name, width, row.count, row.total_us,
                     row.total_us / static_cast<double>(std::max<uint64_t>(1, row.count)));
}

}  // namespace

std::string profile_text(const backend::Profile& profile) {
  double total = 0;
  size_t width = 16;
  for (const backend::ProfileRow& row : profile.ops) {
    total += row.total_us;
    width = std::max(width, row.name.size());
  }
  std::string text;
  if (!profile.ops.empty()) {
    text += fmt::format("{:<{}} {:>9} {:>12} {:>10} {:>6}\n", "op", width, "count", "total us",
                        "mean us", "share");
  }
  for (const backend::ProfileRow& row : profile.ops) {
    text += line(row, row.name, width) +
            fmt::format(" {:>5.1f}%\n", total > 0 ? 100.0 * row.total_us / total : 0.0);
  }
  if (!profile.ops.empty())
    text += fmt::format("{:<{}} {:>9} {:>12.1f}\n", "all ops", width, "", total);
  if (!profile.steps.empty() || !profile.host.empty()) {
    text += fmt::format("\n{:<{}} {:>9} {:>12} {:>10}\n", "step", width, "count", "total us",
                        "mean us");
  }
  for (const backend::ProfileRow& row : profile.steps) text += line(row, row.name, width) + "\n";
  for (const backend::ProfileRow& row : profile.host) {
    text += line(row, "CPU, " + row.name, width) + "\n";
  }
  if (!profile.note.empty()) text += profile.note + "\n";
  return text;
}

}  // namespace wisp::cli
