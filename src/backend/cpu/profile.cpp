#include "backend/cpu/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

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

void Times::add(const std::string& name, std::chrono::steady_clock::duration time) {
  ProfileRow& row = rows_[name];
  row.name = name;
  row.count += 1;
  row.total_us += std::chrono::duration<double, std::micro>(time).count();
}

std::vector<ProfileRow> Times::take() {
  std::vector<ProfileRow> rows;
  for (auto& [name, row] : rows_) rows.push_back(std::move(row));
  rows_.clear();
  std::ranges::stable_sort(rows, std::greater{}, &ProfileRow::total_us);
  return rows;
}

std::string profile_name(const plan::Op& op) {
  const bool prefill = op.kernel_class == plan::KernelClass::prefill;
  return fmt::format("{:<8} {:<14} {}", prefill ? "prefill" : "decode", plan::op_kind(op.body),
                     without_numbers(op.name));
}

}  // namespace wisp::backend::cpu
