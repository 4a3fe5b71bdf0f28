// Helpers of the tests that run whole models: fixtures, and requests through an engine.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/load.h"

namespace wisp::engine {

struct Golden {
  std::filesystem::path model;  // the folder, or the model.gguf in it
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // [tokens, vocab]
  std::vector<int32_t> greedy;
  size_t vocab = 0;
  uint32_t max_positions = 0;  // of the model
  float std = 0.0F;            // of the logits
  bool in_blocks = false;      // whether the files hold matrices in blocks
};

// The fixtures in tests/data/models, sorted; with `folders` those in Hugging Face layout alone:
// what a GPU runs does not depend on how the weights were read.
std::vector<std::string> golden_names(bool folders = false);

// Those of golden_names(true) whose weights are not in blocks: a batch's kernels differ by their
// codecs alone, whose bits the op cases compare.
std::vector<std::string> plain_names();

// The fixture tests/data/models/NAME.
Golden load_golden(const std::string& name);

struct Output {
  std::vector<int32_t> tokens;  // chosen ones
  std::vector<float> logits;    // rows in order of position
  FinishReason finish = FinishReason::none;
  std::string error;
};

// Runs the requests together; a request i enters at step delays[i] (0 where there is none).
std::vector<Output> run_all(Engine& engine, const std::vector<Request>& requests,
                            const std::vector<uint32_t>& delays = {});

}  // namespace wisp::engine
