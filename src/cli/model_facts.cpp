#include "cli/model_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/format.h"

namespace wisp::cli {

ModelFacts model_facts(const formats::Checkpoint& checkpoint) {
  ModelFacts facts;
  for (const formats::TensorView& tensor : checkpoint.tensors()) {
    auto share = std::find_if(facts.dtypes.begin(), facts.dtypes.end(),
                              [&](const DTypeShare& one) { return one.dtype == tensor.dtype; });
    if (share == facts.dtypes.end()) {
      facts.dtypes.push_back({.dtype = tensor.dtype});
      share = facts.dtypes.end() - 1;
    }
    const uint64_t params = formats::element_count(tensor.shape);
    ++share->tensors;
    share->params += params;
    share->bytes += tensor.data.size();
    facts.params += params;
    facts.bytes += tensor.data.size();
  }
  std::stable_sort(facts.dtypes.begin(), facts.dtypes.end(),
                   [](const DTypeShare& a, const DTypeShare& b) { return a.bytes > b.bytes; });
  return facts;
}

std::string model_name(const model::ModelConfig& config, const ModelFacts& facts) {
  const std::string type =
      facts.dtypes.empty() ? "" : std::string(formats::dtype_name(facts.dtypes.front().dtype));
  return fmt::format("{} {} {}", config.family, count_text(facts.params), type);
}

}  // namespace wisp::cli
