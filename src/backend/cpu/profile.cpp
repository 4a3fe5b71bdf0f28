#include "backend/cpu/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace wisp::backend::cpu {
namespace {

// "blk.12.attn.q" -> "blk.*.attn.q".
std::string without_numbers(const std::string& name) {
  std::string out;
  size_t begin = 0;
  while (begin <= name.size()) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    if (begin > 0) out += '.';
    out += number ? "*" : part;
    begin = end + 1;
  }
  return out;
}

}  // namespace

void Profile::add(const plan::Op& op, Duration time) {
  const bool prefill = op.kernel_class == plan::KernelClass::prefill;
  Entry& entry = entries_[fmt::format("{:<8} {:<14} {}", prefill ? "prefill" : "decode",
                                      plan::op_kind(op.body), without_numbers(op.name))];
  entry.time += time;
  ++entry.runs;
}

std::string Profile::table() const {
  Duration total{};
  std::vector<std::pair<std::string, Entry>> lines(entries_.begin(), entries_.end());
  for (const auto& line : lines) total += line.second.time;
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  const auto milliseconds = [](Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  std::string text = fmt::format("{:>11} {:>6} {:>9} {:>9}  {:<8} {:<14} {}\n", "total ms", "%",
                                 "runs", "us/run", "class", "op", "name");
  for (const auto& [name, entry] : lines) {
    const double time = milliseconds(entry.time);
    text += fmt::format("{:>11.3f} {:>6.1f} {:>9} {:>9.2f}  {}\n", time,
                        100.0 * time / std::max(1e-9, milliseconds(total)), entry.runs,
                        1e3 * time / static_cast<double>(entry.runs), name);
  }
  text += fmt::format("{:>11.3f} {:>6.1f}\n", milliseconds(total), 100.0);
  return text;
}

}  // namespace wisp::backend::cpu
