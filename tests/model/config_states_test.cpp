// Configs of families with states: damaged ones are refused by name, published ones are read.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "config_file.h"

namespace wisp::model {
namespace {

using nlohmann::json;

json config_of(const std::string& family) {
  std::ifstream file(std::filesystem::path(WISP_SOURCE_DIR) / "tests/data/models" / family /
                     "config.json");
  return json::parse(file);
}

// The message of reading the family's tiny config with one field set.
std::string error_with(const std::string& family, const std::string& field, const json& value) {
  json config = config_of(family);
  config[field] = value;
  return error_of(config);
}

struct Damage {
  const char* family;
  const char* field;
  json value;
  const char* message;  // part of the one expected
};

TEST(ConfigStates, DamagedConfigsAreRefusedByName) {
  const Damage damages[] = {
      {"mamba", "expand", 0, "scan_inner_size"},
      {"mamba", "expand", 4294967295U, "'expand' times hidden_size"},
      {"mamba", "expand", 67108865, "'expand' times hidden_size"},  // 64 in 32 bits
      {"mamba", "state_size", 0, "scan_state_size"},
      {"mamba", "state_size", 257, "scan_state_size"},
      {"mamba", "conv_kernel", 1, "convolutions of 1 taps"},
      {"mamba", "conv_kernel", 17, "convolutions of 17 taps"},
      {"mamba", "time_step_rank", 4294967295U, "time_step_rank"},
      {"mamba", "hidden_act", "gelu", "'hidden_act': only silu"},
      {"mamba", "time_step_limit", json::array({0.0, 0.01}), "'time_step_limit'"},
      {"mamba", "rms_norm_eps", 1e-6, "'rms_norm_eps' and 'layer_norm_epsilon' differ"},
      {"mamba2", "hidden_act", "gelu", "'hidden_act': only silu"},
      {"mamba2", "num_heads", 3, "num_heads"},
      {"mamba2", "n_groups", 0, "scan_groups"},
      {"mamba2", "n_groups", 3, "heads of 3 groups"},
      {"mamba2", "time_step_limit", json::array({2.0, 1.0}), "time_step_limit is 2 to 1"},
      {"mamba2", "time_step_limit", json::array({0.0}), "time_step_limit"},
      {"nemotron_h", "mamba_head_dim", 4294967295U, "'mamba_num_heads' times mamba_head_dim"},
      {"nemotron_h", "mamba_num_heads", 0, "scan_inner_size"},
      {"nemotron_h", "n_groups", 3, "groups"},
      {"nemotron_h", "num_hidden_layers", 3, "expected 3 kinds"},
      {"nemotron_h", "layers_block_type", json::array({"moe", "moe", "moe", "other"}), "'other'"},
      {"nemotron_h", "layers_block_type", json::array({"moe", "moe", "moe", 7}), "7 is no name"},
      {"rwkv4", "attention_hidden_size", 4294967295U, "attention_size"},
      {"rwkv4", "layer_norm_epsilon", 1e-3, "'layer_norm_epsilon': 0.001 is not supported"},
      {"lfm2", "hidden_act", "gelu", "'hidden_act': only silu"},
      {"lfm2", "partial_rotary_factor", 0.5, "'partial_rotary_factor' is not supported"},
      {"lfm2_moe", "hidden_act", "gelu", "'hidden_act': only silu"},
      {"lfm2", "conv_L_cache", 1, "convolutions of 1 taps"},
      {"lfm2", "conv_L_cache", 17, "convolutions of 17 taps"},
      {"qwen3_next", "hidden_act", "gelu", "'hidden_act': only silu"},
      {"qwen3_5", "hidden_act", "gelu", "'hidden_act': only silu"},
      {"qwen3_5_moe", "hidden_act", "gelu", "'hidden_act': only silu"},
      {"qwen3_5_moe", "norm_topk_prob", false, "'norm_topk_prob': false"},
      {"qwen3_next", "linear_num_key_heads", 0, "delta_net_key_heads"},
      {"qwen3_next", "linear_num_value_heads", 3, "is not a multiple"},
      {"qwen3_next", "linear_key_head_dim", 257, "delta_net_key_dim"},
      {"qwen3_next", "linear_conv_kernel_dim", 17, "conv_taps"},
  };
  for (const Damage& d : damages) {
    const std::string error = error_with(d.family, d.field, d.value);
    EXPECT_NE(error.find(d.message), std::string::npos)
        << d.family << " " << d.field << " = " << d.value << ": " << error;
  }
}

TEST(ConfigStates, StatesOfAScanAreBounded) {
  json config = config_of("mamba2");
  config["hidden_size"] = 1 << 21;
  config["num_heads"] = 1 << 12;
  config["head_dim"] = 1 << 10;
  config["state_size"] = 256;
  EXPECT_NE(error_of(config).find("states of 256"), std::string::npos) << error_of(config);
}

// Python's writers put the bare word into a file, later ones a string or an object.
TEST(ConfigStates, LimitsOfTheTimeStepMayBeInfinite) {
  std::string text = config_of("mamba2").dump();
  const json plain = json::parse(text);
  ASSERT_TRUE(plain.contains("time_step_limit"));
  for (const std::string infinity :
       {"Infinity", R"("Infinity")", R"("inf")", R"({"__float__": "Infinity"})"}) {
    json config = plain;
    config["time_step_limit"] = "HERE";
    config["_name_or_path"] = R"(an "Infinity" \ of NaN)";  // strings stay as they are
    text = config.dump();
    text.replace(text.find("\"HERE\""), 6, "[0.25, " + infinity + "]");
    const std::filesystem::path& folder = temporary_folder();
    std::ofstream(folder / "config.json") << text;
    formats::write_safetensors(folder / "model.safetensors", {});
    const ModelConfig c = read_config(formats::Checkpoint::open(folder));
    ASSERT_TRUE(c.scan.has_value());
    EXPECT_EQ(c.scan->dt_min, 0.25F);
    EXPECT_TRUE(std::isinf(c.scan->dt_max)) << infinity;
  }
}

}  // namespace
}  // namespace wisp::model
