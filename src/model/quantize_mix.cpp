#include "model/quantize_mix.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"

namespace wisp::model {

namespace {

using enum formats::DType;
using formats::DType;

constexpr QuantizeMix kMixes[] = {
    {"Q4_0", Q4_0, 2},    {"Q4_1", Q4_1, 3},    {"Q5_0", Q5_0, 8},      {"Q5_1", Q5_1, 9},
    {"Q8_0", Q8_0, 7},    {"Q4_K_S", Q4_K, 14}, {"Q4_K_M", Q4_K, 15},   {"Q5_K_S", Q5_K, 16},
    {"Q5_K_M", Q5_K, 17}, {"Q6_K", Q6_K, 18},   {"IQ4_NL", IQ4_NL, 25}, {"IQ4_XS", IQ4_XS, 30},
};

// What a tensor does, as far as the mixes tell tensors apart.
enum class Role { output, token_embeddings, values, keys, attention_output, ffn_down, other };

struct RoleName {
  std::string_view part;  // of the tensor's name
  Role role;
};

constexpr RoleName kRoleNames[] = {
    {"attn_qkv.weight", Role::values},
    {"attn_kv_b.weight", Role::values},
    {"attn_v.weight", Role::values},
    {"attn_k.weight", Role::keys},
    {"attn_output.weight", Role::attention_output},
    {"ffn_down", Role::ffn_down},
};

Role role_of(std::string_view name) {
  if (name == "output.weight") return Role::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") {
    return Role::token_embeddings;
  }
  for (const RoleName& row : kRoleNames) {
    if (name.find(row.part) != std::string_view::npos) return row.role;
  }
  return Role::other;
}

// Parts of the names of matrices that keep their type: norms, routers, positions, and what is too
// small to be worth the error.
constexpr std::string_view kKept[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "position_embd",
    "token_types.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
};

bool is_quantized(const formats::TensorView& tensor) {
  const auto& shape = tensor.shape;
  const auto first = std::find_if(shape.begin(), shape.end(), [](uint64_t n) { return n != 1; });
  if (shape.end() - first < 2) return false;
  const std::string_view name = tensor.name;
  return name.ends_with("weight") && formats::dtype_info(tensor.dtype).dequantize != nullptr &&
         std::none_of(std::begin(kKept), std::end(kKept), [&](std::string_view part) {
           return name.find(part) != std::string_view::npos;
         });
}

// What is known of the model, and of the tensor at hand.
struct Facts {
  bool falcon = false;
  bool eight_experts = false;
  bool grouped_by_four = false;  // queries a key and value head
  bool eighty_layers_grouped = false;
  bool importance = false;
  int64_t position = 0;  // of the tensor among those of its role
  int64_t count = 0;     // of these

  bool in_first(int64_t part) const { return position < count / part; }
  // The first and the last eighth of the layers, and every third between.
  bool sensitive() const {
    return in_first(8) || position >= 7 * count / 8 || (position - count / 8) % 3 == 2;
  }
};

struct Rule {
  Role role;
  DType dtype;
  std::array<std::string_view, 4> mixes;  // none: all
  bool (*applies)(const Facts&);
};

// The first that applies; without any it is the mix' base.
std::optional<DType> exception(Role role, std::string_view mix, const Facts& facts) {
  // clang-format off
  static constexpr Rule kRules[] = {
      {Role::values, Q8_0, {}, [](const Facts& f) { return f.eight_experts; }},
      {Role::keys, Q8_0, {}, [](const Facts& f) { return f.eight_experts; }},
      {Role::attention_output, Q5_K, {"Q4_K_S", "Q4_K_M", "IQ4_NL", "IQ4_XS"},
       [](const Facts& f) { return f.eight_experts && !f.falcon; }},
      {Role::values, Q5_K, {"IQ4_NL", "IQ4_XS"},
       [](const Facts& f) { return f.grouped_by_four; }},
      {Role::values, Q6_K, {"Q4_K_M", "Q5_K_M"}, [](const Facts& f) { return f.sensitive(); }},
      {Role::values, Q5_K, {"Q4_K_S"}, [](const Facts& f) { return f.position < 4; }},
      {Role::values, Q5_K, {"Q4_K_S", "Q4_K_M"},
       [](const Facts& f) { return f.eighty_layers_grouped; }},
      {Role::ffn_down, Q6_K, {"Q4_K_M"},
       [](const Facts& f) { return f.falcon ? f.in_first(16) : f.sensitive(); }},
      {Role::ffn_down, Q5_K, {"Q4_K_M"}, [](const Facts& f) { return f.falcon && f.sensitive(); }},
      {Role::ffn_down, Q6_K, {"Q5_K_M"}, [](const Facts& f) { return f.sensitive(); }},
      {Role::ffn_down, Q5_K, {"Q4_K_S"}, [](const Facts& f) { return !f.falcon && f.in_first(8); }},
      {Role::ffn_down, Q5_K, {"IQ4_NL", "IQ4_XS"},
       [](const Facts& f) { return !f.importance && f.in_first(8); }},
      {Role::ffn_down, Q4_1, {"Q4_0"}, [](const Facts& f) { return f.importance && f.in_first(8); }},
      {Role::ffn_down, Q5_1, {"Q5_0"}, [](const Facts& f) { return f.importance && f.in_first(8); }},
  };
  // clang-format on
  for (const Rule& rule : kRules) {
    const bool of_mix = rule.mixes.front().empty() ||
                        std::find(rule.mixes.begin(), rule.mixes.end(), mix) != rule.mixes.end();
    if (rule.role == role && of_mix && rule.applies(facts)) return rule.dtype;
  }
  return std::nullopt;
}

// A type whose blocks fit rows of `columns` values.
DType fitting(DType dtype, uint64_t columns) {
  static constexpr std::pair<DType, DType> kShorter[] = {
      {Q4_K, Q5_0}, {Q5_K, Q5_1}, {Q6_K, Q8_0}, {IQ4_XS, IQ4_NL}};
  const auto fits = [&] { return columns % formats::dtype_info(dtype).block_elements == 0; };
  for (const auto& [longer, shorter] : kShorter) {
    if (dtype == longer && !fits()) {
      dtype = shorter;
      break;
    }
  }
  return fits() ? dtype : F16;
}

// The layer's number in "blk.12.ffn_down.weight"; -1 for a tensor of no layer.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  int64_t layer = -1;
  if (name.starts_with(kPrefix)) {
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  }
  return layer;
}

// A number of the model, of its first layer where layers differ.
std::optional<int64_t> number(const formats::Metadata& metadata, const std::string& key) {
  const auto found = metadata.values().find(key);
  if (found == metadata.values().end()) return std::nullopt;
  if (const auto* each = std::get_if<std::vector<int64_t>>(&found->second)) {
    return each->empty() ? std::nullopt : std::optional(each->front());
  }
  return metadata.get_int(key);
}

struct ModelNumbers {
  Facts facts;
  int64_t layers = 0;
  bool has_experts = false;
};

ModelNumbers model_numbers(const formats::Metadata& metadata) {
  const std::string* architecture = metadata.find_string("general.architecture");
  if (architecture == nullptr) fail("no general.architecture: not a model");
  const auto get = [&](const char* key, int64_t otherwise) {
    return number(metadata, *architecture + "." + key).value_or(otherwise);
  };
  ModelNumbers numbers;
  numbers.layers = get("block_count", 0);
  const int64_t experts = get("expert_count", 0);
  const int64_t heads = get("attention.head_count", 0);
  const int64_t kv_heads = get("attention.head_count_kv", heads);
  numbers.has_experts = experts > 1;
  numbers.facts = {.falcon = *architecture == "falcon",
                   .eight_experts = experts == 8,
                   .grouped_by_four = kv_heads > 0 && heads / kv_heads >= 4,
                   .eighty_layers_grouped = numbers.layers == 80 && heads != kv_heads};
  return numbers;
}

}  // namespace

std::span<const QuantizeMix> quantize_mixes() { return kMixes; }

const QuantizeMix* find_quantize_mix(std::string_view name) {
  std::string upper(name);
  for (char& letter : upper) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  for (const QuantizeMix& mix : kMixes) {
    if (mix.name == upper) return &mix;
  }
  return nullptr;
}

std::vector<DType> quantized_types(const formats::Checkpoint& checkpoint, const QuantizeMix& mix,
                                   bool with_importance) {
  const std::span<const formats::TensorView> tensors = checkpoint.tensors();
  const ModelNumbers numbers = model_numbers(checkpoint.metadata());
  const bool tied = checkpoint.find("output.weight") == nullptr;
  const auto all_values = std::count_if(tensors.begin(), tensors.end(), [](const auto& t) {
    return role_of(t.name) == Role::values;
  });

  // Positions count in the order of layers, whatever the order in the file.
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(layer_of(tensors[a].name), tensors[a].name) <
           std::pair(layer_of(tensors[b].name), tensors[b].name);
  });
  std::vector<DType> types(tensors.size());
  int64_t values_seen = 0, ffn_seen = 0;
  for (const size_t i : order) {
    const formats::TensorView& tensor = tensors[i];
    types[i] = tensor.dtype;
    if (!is_quantized(tensor)) continue;
    const Role role = role_of(tensor.name);
    Facts facts = numbers.facts;
    facts.importance = with_importance;
    if (role == Role::output || (role == Role::token_embeddings && tied)) {
      const DType wanted = mix.base == Q8_0 || facts.falcon ? Q8_0 : Q6_K;
      types[i] = fitting(wanted, tensor.shape.back());
      continue;
    }
    if (role == Role::values) {
      facts.position = values_seen++;
      facts.count = all_values;
    } else if (role == Role::ffn_down) {
      // A layer with experts may have several of them.
      facts.position = numbers.has_experts ? layer_of(tensor.name) : ffn_seen++;
      facts.count = numbers.layers;
    }
    const DType wanted = exception(role, mix.name, facts).value_or(mix.base);
    types[i] = fitting(wanted, tensor.shape.back());
  }
  return types;
}

}  // namespace wisp::model
