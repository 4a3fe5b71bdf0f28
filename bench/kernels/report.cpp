#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace wisp::lab {
namespace {

constexpr std::pair<std::string_view, Limits> kCards[] = {
    {"NVIDIA H200", {.bandwidth = 4800, .f32 = 67, .int8 = 130, .f16_matrices = 990}},
};

double gigabytes_per_second(const Row& row, double us) { return row.point.bytes / us / 1e3; }
double tera_operations_per_second(const Row& row, double us) {
  return row.point.operations / us / 1e6;
}

// Of the limit that is nearer: 1 is all that the card can do. 0: not known.
double share(const Row& row, double us, const Limits& limits) {
  double most = limits.f32;
  if (row.spec->arithmetic == Arithmetic::int8) most = limits.int8;
  if (row.matrices) most = limits.f16_matrices;
  double result = 0;
  if (limits.bandwidth > 0) result = gigabytes_per_second(row, us) / limits.bandwidth;
  if (most > 0) result = std::max(result, tera_operations_per_second(row, us) / most);
  return result;
}

std::string share_text(double share) {
  return share > 0 ? fmt::format("{:.0f}%", 100 * share) : std::string();
}

std::string class_name(const Row& row) {
  return row.spec->kernel_class == plan::KernelClass::prefill ? "prefill" : "decode";
}

struct Cell {
  const char* name;
  int width;  // negative: text, to the left
  std::string value;
};

std::vector<Cell> cells(const Row& row, const Limits& limits) {
  const CaseSpec& spec = *row.spec;
  const double us = row.streamed_us;
  return {{"op", -10, spec.op},
          {"type", -5, spec.type},
          {"class", -7, class_name(row)},
          {"shape", -12, spec.shape},
          {"k", 5, fmt::format("{}", row.point.columns)},
          {"depth", 8, row.point.depth},
          {"streamed µs", 11, fmt::format("{:.2f}", us)},
          {"GB/s", 7, fmt::format("{:.1f}", gigabytes_per_second(row, us))},
          {"TFLOP/s", 8,
           row.point.operations > 0 ? fmt::format("{:.3f}", tera_operations_per_second(row, us))
                                    : std::string()},
          {"share", 5, share_text(share(row, us, limits))},
          {"in sequence µs", 14, fmt::format("{:.2f}", row.in_sequence_us)},
          {"share", 5, share_text(share(row, row.in_sequence_us, limits))},
          {"kernel", -1, row.kernel}};
}

// Widths count characters, of which µ takes two bytes.
std::string padded(const std::string& text, int width) {
  const auto characters = static_cast<int>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
  const std::string space(static_cast<size_t>(std::max(0, std::abs(width) - characters)), ' ');
  return width < 0 ? text + space : space + text;
}

}  // namespace

Limits known_limits(const std::string& device) {
  for (const auto& [name, limits] : kCards) {
    if (device.find(name) != std::string::npos) return limits;
  }
  return {};
}

std::string table_header() {
  const CaseSpec spec;
  std::string names = "|";
  std::string rule = "|";
  for (const Cell& cell : cells({.spec = &spec}, {})) {
    names += fmt::format(" {} |", padded(cell.name, cell.width));
    rule += (cell.width < 0 ? "---|" : "---:|");
  }
  return names + "\n" + rule + "\n";
}

std::string table_row(const Row& row, const Limits& limits) {
  std::string text = "|";
  for (const Cell& cell : cells(row, limits)) {
    text += fmt::format(" {} |", padded(cell.value, cell.width));
  }
  return text + "\n";
}

std::string rows_json(const std::string& device, const std::vector<Row>& rows,
                      const Limits& limits) {
  using json = nlohmann::ordered_json;  // fields in the order written here
  json list = json::array();
  for (const Row& row : rows) {
    list.push_back({{"op", row.spec->op},
                    {"type", row.spec->type},
                    {"class", class_name(row)},
                    {"shape", row.spec->shape},
                    {"columns", row.point.columns},
                    {"depth", row.point.depth},
                    {"kernel", row.kernel},
                    {"bytes", row.point.bytes},
                    {"operations", row.point.operations},
                    {"streamed_us", row.streamed_us},
                    {"streamed_share", share(row, row.streamed_us, limits)},
                    {"in_sequence_us", row.in_sequence_us},
                    {"in_sequence_share", share(row, row.in_sequence_us, limits)},
                    {"wrong", row.wrong}});
  }
  const json object = {{"device", device}, {"rows", std::move(list)}};
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace wisp::lab
