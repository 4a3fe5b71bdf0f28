// A checkpoint in a few numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/dtype.h"
#include "model/config.h"

namespace wisp::cli {

struct DTypeShare {
  formats::DType dtype;
  uint64_t tensors = 0;
  uint64_t params = 0;
  uint64_t bytes = 0;
};

struct ModelFacts {
  uint64_t params = 0;
  uint64_t bytes = 0;
  std::vector<DTypeShare> dtypes;  // by falling bytes
};

ModelFacts model_facts(const formats::Checkpoint& checkpoint);

// "llama 134.52 M Q4_1": family, parameters, the type of most bytes.
std::string model_name(const model::ModelConfig& config, const ModelFacts& facts);

}  // namespace wisp::cli
