#include "cli/format.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace wisp::cli {

namespace {

template <size_t N>
std::string scaled(uint64_t value, double step, const std::array<std::string_view, N>& units) {
  auto number = static_cast<double>(value);
  size_t unit = 0;
  while (number >= step && unit + 1 < N) {
    number /= step;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}{}", value, units[0]);
  return fmt::format("{:.2f}{}", number, units[unit]);
}

}  // namespace

std::string bytes_text(uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {" B", " KiB", " MiB", " GiB", " TiB"};
  return scaled(bytes, 1024, kUnits);
}

std::string count_text(uint64_t count) {
  static constexpr std::array<std::string_view, 5> kUnits = {"", " K", " M", " B", " T"};
  return scaled(count, 1000, kUnits);
}

std::string rate_text(double per_second) {
  if (per_second >= 100) return fmt::format("{:.0f}", per_second);
  if (per_second >= 10) return fmt::format("{:.1f}", per_second);
  return fmt::format("{:.2f}", per_second);
}

}  // namespace wisp::cli
