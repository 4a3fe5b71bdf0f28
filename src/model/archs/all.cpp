#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

constexpr std::array<const Arch*, 6> kArchs = {&kLlama, &kMistral, &kMinistral3,
                                               &kQwen2, &kQwen3,   &kSmolLM3};

const Arch& find(std::string_view name, std::vector<std::string_view> Arch::*names,
                 std::string_view what) {
  std::string known;
  for (const Arch* arch : kArchs) {
    if (std::ranges::find(arch->*names, name) != (arch->*names).end()) return *arch;
    for (const std::string_view n : arch->*names)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", n);
  }
  fail("{} '{}' is not supported; known: {}", what, name, known);
}

}  // namespace

std::span<const Arch* const> all_archs() { return kArchs; }

const Arch& arch_for_hf(std::string_view model_type) {
  return find(model_type, &Arch::hf_model_types, "model_type");
}

const Arch& arch_for_gguf(std::string_view architecture) {
  return find(architecture, &Arch::gguf_architectures, "general.architecture");
}

}  // namespace wisp::model
