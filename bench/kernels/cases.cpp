#include <algorithm>
#include <cstring>
#include <utility>

#include "cli/options.h"
#include "formats/quoted.h"
#include "lab_case.h"

namespace wisp::lab {
namespace {

using Adder = void (*)(const Sweep&, std::vector<CaseSpec>&);

constexpr std::pair<const char*, Adder> kOps[] = {
    {"linear", add_linear},     {"attention", add_attention},   {"rope_kv", add_rope_kv},
    {"norm", add_norm},         {"layer_norm", add_layer_norm}, {"glu", add_glu},
    {"activate", add_activate}, {"softcap", add_softcap},       {"quantize", add_quantize},
    {"add", add_add},           {"embed", add_embed},           {"sample", add_sample},
};

}  // namespace

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const auto& [name, add] : kOps) names.emplace_back(name);
  return names;
}

std::vector<CaseSpec> lab_cases(const Sweep& sweep) {
  std::vector<CaseSpec> specs;
  for (const std::string& wanted : asked(sweep.ops, op_names())) {
    const auto* op = std::ranges::find(kOps, wanted, [](const auto& o) { return o.first; });
    if (op == std::end(kOps)) {
      throw cli::UsageError("there is no op " + formats::in_quotes(wanted) + " to measure");
    }
    op->second(sweep, specs);
  }
  return specs;
}

backend::selftest::Bytes weight_bytes(formats::DType dtype, uint32_t rows, uint32_t cols) {
  constexpr uint32_t kPatternRows = 61;
  backend::selftest::Random random(rows * 31 + cols);
  const std::vector<std::byte> pattern =
      backend::selftest::random_weight(random, dtype, std::min(rows, kPatternRows), cols, 0.5F);
  std::vector<std::byte> bytes(formats::row_bytes(dtype, cols) * rows);
  for (size_t at = 0; at < bytes.size(); at += pattern.size()) {
    std::memcpy(bytes.data() + at, pattern.data(), std::min(pattern.size(), bytes.size() - at));
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

}  // namespace wisp::lab
