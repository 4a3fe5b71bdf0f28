// config.json files for tests.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "model/model.h"
#include "temporary_folder.h"

namespace wisp::model {

inline nlohmann::json llama_config() {
  return nlohmann::json::parse(R"({
    "model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "tie_word_embeddings": true, "rope_theta": 50000.0, "torch_dtype": "bfloat16"})");
}

// Writes the config beside an empty weight file and reads it back as the program does.
inline ModelConfig read(const nlohmann::json& config) {
  const std::filesystem::path& folder = temporary_folder();
  std::ofstream(folder / "config.json") << config.dump();
  formats::write_safetensors(folder / "model.safetensors", {});
  return read_config(formats::Checkpoint::open(folder));
}

// The message of reading it; empty when there is none.
inline std::string error_of(const nlohmann::json& config) {
  try {
    read(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace wisp::model
