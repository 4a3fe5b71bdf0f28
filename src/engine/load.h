// From a path to something that answers: opens the files, chooses the backend, loads the weights,
// prepares the plans.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/create.h"
#include "engine/engine.h"
#include "formats/checkpoint.h"
#include "model/model.h"

namespace wisp::engine {

struct LoadOptions {
  std::filesystem::path model;
  backend::CreateOptions device;
  model::Math math = model::Math::fast;
  formats::DType kv_dtype = formats::DType::F16;
  // Positions a sequence; 0: the model's, at most 8,192. More than the model's are allowed, with a
  // warning, where positions are not learned one by one.
  uint32_t context = 0;
  // The same if a user said so, 0 if it was computed from what is to run: results must not depend
  // on that (longrope).
  uint32_t stated_context = 0;
  uint32_t max_slots = 1;  // sequences at once
  uint32_t num_pages = 0;  // KV pages; 0: for all sequences, however long
  uint32_t prefill_chunk = 512;
  uint32_t max_logits = 16;  // rows of logits that the prefill plan holds at once
  std::optional<uint64_t> shuffle_seed;
  bool profile = false;
  bool check_tensors = false;  // look for weights that are no numbers, before all else
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;  // may be empty
};

// The positions of a sequence: those asked for, or with 0 the model's, at most 8,192. Throws Error
// where the model cannot have so many.
uint32_t choose_context(const model::ModelConfig& config, uint32_t asked);

// Owns everything below an Engine. One thread uses it.
class LoadedModel {
 public:
  // Throws Error: what could not be read or does not fit, with the numbers.
  explicit LoadedModel(const LoadOptions& options);

  const formats::Checkpoint& checkpoint() const { return checkpoint_; }
  const model::ModelConfig& config() const { return model_.config; }
  backend::Backend& backend() { return *backend_; }
  uint32_t context() const { return engine_options_.context; }

  // A new engine on the loaded weights. Only one may be busy at a time.
  std::unique_ptr<Engine> make_engine();

 private:
  formats::Checkpoint checkpoint_;
  model::Model model_;
  std::unique_ptr<backend::Backend> backend_;
  ModelPlans plans_;
  EngineOptions engine_options_;
};

}  // namespace wisp::engine
