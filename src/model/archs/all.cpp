#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "model/archs/families.h"

namespace wisp::model {
namespace {

constexpr std::array<const Arch*, 43> kArchs = {
    &kBitNet,  &kCohere,     &kCohere2,      &kDeepSeekV2, &kDeepSeekV3, &kExaone4,   &kFalcon,
    &kGemma2,  &kGemma3,     &kGemma3n,      &kGemma4,     &kGlm4,       &kGpt2,      &kGptNeoX,
    &kGptOss,  &kGranite,    &kHunyuanDense, &kLfm2,       &kLfm2Moe,    &kLlama,     &kMamba,
    &kMamba2,  &kMinistral3, &kMistral,      &kMixtral,    &kNemotron,   &kNemotronH, &kOlmo,
    &kOlmo2,   &kOlmo3,      &kOlmoe,        &kPhi2,       &kPhi3,       &kQwen2,     &kQwen2Moe,
    &kQwen3,   &kQwen3Moe,   &kQwen3Next,    &kQwen35,     &kQwen35Moe,  &kRwkv4,     &kSmolLM3,
    &kStableLm};

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

void read_window_pattern(const JsonFields& fields, ModelConfig& c, uint32_t usual) {
  // The second name is what today's library writes.
  const std::string_view key =
      fields.first_of({"sliding_window_pattern", "_sliding_window_pattern"});
  const nlohmann::json* pattern = fields.find(key);
  const bool text = pattern != nullptr && pattern->is_string();
  const size_t interval =
      text ? fields.get_string(key)->size() : fields.get_uint(key).value_or(usual);
  if (fields.has("layer_types")) return;
  if (interval == 0) fail("field '{}': {} is no interval of layers", key, shown(*pattern));
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    if ((i + 1) % interval == 0) c.layers[i].window = 0;
  }
}

void read_window_pattern(const GgufFields& fields, ModelConfig& c, uint32_t usual) {
  const std::vector<bool> windows =
      fields.get_pattern("attention.sliding_window_pattern", c.num_layers, usual);
  for (uint32_t i = 0; i < c.num_layers; ++i) {
    if (!windows[i]) c.layers[i].window = 0;
  }
}

void set_windows(const GgufFields& fields, ModelConfig& c) {
  const std::vector<bool>* windows = fields.find_bools("attention.sliding_window_pattern");
  if (windows == nullptr || windows->size() != c.num_layers) {
    fail(
        "metadata key '{}.attention.sliding_window_pattern': expected a bool for each of {} layers",
        fields.arch(), c.num_layers);
  }
  const uint32_t window = fields.require_uint("attention.sliding_window");
  for (uint32_t i = 0; i < c.num_layers; ++i) c.layers[i].window = (*windows)[i] ? window : 0;
}

void use_local_rope(ModelConfig& c) {
  for (LayerConfig& layer : c.layers) {
    if (layer.window != 0) layer.rope = LayerRope::local;
  }
}

void drop_rope_without_window(ModelConfig& c) {
  for (LayerConfig& layer : c.layers) {
    if (layer.window == 0) layer.rope = LayerRope::none;
  }
}

void expect_silu(const ModelConfig& c) {
  if (c.activation != plan::Activation::silu) fail("field 'hidden_act': only silu is supported");
}

void default_ffn_size(ModelConfig& c, uint32_t size) {
  for (LayerConfig& layer : c.layers) {
    if (layer.intermediate_size == 0) layer.intermediate_size = size;
  }
}

void share_kv(ModelConfig& c, uint32_t count) {
  if (count > c.num_layers) fail("{} of {} layers share keys and values", count, c.num_layers);
  const uint32_t own = c.num_layers - count;
  for (uint32_t i = own; i < c.num_layers; ++i) {
    const auto same = [&](uint32_t j) { return c.layers[j].window == c.layers[i].window; };
    uint32_t source = own;
    while (source > 0 && !same(source - 1)) --source;
    if (source == 0) fail("layer {} has no earlier layer to share keys and values with", i);
    c.layers[i].kv_of = source - 1;
  }
}

std::span<const Arch* const> all_archs() { return kArchs; }

const Arch& arch_named(std::string_view family) {
  const auto arch = std::ranges::find(kArchs, family, &Arch::name);
  ensure(arch != kArchs.end(), "a config's family is known");
  return **arch;
}

const Arch& arch_for_hf(std::string_view model_type) {
  return find(model_type, &Arch::hf_model_types, "model_type");
}

const Arch& arch_for_gguf(std::string_view architecture) {
  return find(architecture, &Arch::gguf_architectures, "general.architecture");
}

}  // namespace wisp::model
