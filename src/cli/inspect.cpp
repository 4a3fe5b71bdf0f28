#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/model_facts.h"
#include "cli/options.h"
#include "cli/output.h"
#include "engine/load.h"
#include "formats/checkpoint.h"
#include "model/model.h"

namespace wisp::cli {

namespace {

using json = nlohmann::ordered_json;  // fields in the order written here

struct InspectFlags {
  std::string model;
  PlanFlags plan_flags;
  bool plan = false;
  bool tensors = false;
  bool json = false;
};

constexpr uint32_t kPrefillColumns = 512;

// Layers that look alike, such as "0-5, 7: window 512".
struct LayerGroup {
  std::string what;
  std::vector<uint32_t> layers;
};

std::vector<LayerGroup> layer_groups(const model::ModelConfig& config) {
  std::vector<LayerGroup> groups;
  const auto differ = [&](uint32_t model::LayerConfig::*size) {
    return !model::shared_size(config, size);
  };
  for (uint32_t i = 0; i < config.layers.size(); ++i) {
    const model::LayerConfig& layer = config.layers[i];
    const bool attention = layer.mixer == model::Mixer::attention;
    std::string what(model::mixer_name(layer.mixer));
    if (layer.mixer == model::Mixer::none) what = "network alone";
    if (attention) {
      what = (layer.window == 0 ? "full attention" : fmt::format("window {}", layer.window)) +
             (layer.rope == model::LayerRope::none    ? ", no rope"
              : layer.rope == model::LayerRope::local ? ", local rope"
                                                      : "");
    }
    if (!layer.network) what += ", no network";
    if (attention &&
        (differ(&model::LayerConfig::head_dim) || differ(&model::LayerConfig::num_kv_heads))) {
      what += fmt::format(", {} KV heads of {}", layer.num_kv_heads, layer.head_dim);
    }
    if (layer.kv_of) what += fmt::format(", keys and values of layer {}", *layer.kv_of);
    if (layer.network && differ(&model::LayerConfig::intermediate_size)) {
      what += fmt::format(", network of {}", layer.intermediate_size);
    }
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const LayerGroup& one) { return one.what == what; });
    if (group == groups.end()) group = groups.insert(groups.end(), {.what = what, .layers = {}});
    group->layers.push_back(i);
  }
  return groups;
}

// "0-5, 7".
std::string ranges_text(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", numbers[i]);
    if (end - i > 1) text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

uint64_t kv_bytes_per_token(const model::ModelConfig& config, formats::DType dtype) {
  uint64_t values = 0;
  for (const plan::KvLayer& layer : model::kv_layers(config)) values += plan::kv_elements(layer);
  return values * formats::row_bytes(dtype, 1);
}

uint64_t state_bytes(const model::ModelConfig& config) {
  uint64_t values = 0;
  for (const plan::StateLayer& layer : model::state_layers(config)) values += layer.width;
  return values * sizeof(float);
}

std::vector<plan::Plan> build_plans(const model::Model& model, const PlanFlags& flags) {
  const auto build = [&](plan::KernelClass kernel_class, uint32_t columns) {
    return model::build_plan(model, {.math = flags.math_mode(),
                                     .kernel_class = kernel_class,
                                     .max_columns = columns,
                                     .max_logits = 1});
  };
  return {build(plan::KernelClass::prefill, kPrefillColumns), build(plan::KernelClass::decode, 1)};
}

std::string format_name(const formats::Checkpoint& checkpoint) {
  return checkpoint.kind() == formats::CheckpointKind::gguf ? "GGUF" : "Hugging Face safetensors";
}

// Whether text commands work on it; "" for no.
std::string tokenizer_name(const formats::Checkpoint& checkpoint) {
  if (checkpoint.kind() == formats::CheckpointKind::huggingface) {
    const char* name = "tokenizer.json";
    return std::filesystem::exists(checkpoint.folder() / name) ? name : "";
  }
  std::string text;
  for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.pre"}) {
    const std::string* name = checkpoint.metadata().find_string(key);
    if (name != nullptr) text += (text.empty() ? "" : ", ") + one_line(*name);
  }
  return text;
}

// All of it before any is printed, since reading the file can still fail.
std::string text_of(const InspectFlags& flags, const formats::Checkpoint& checkpoint,
                    const model::ModelConfig& config) {
  std::string text;
  const ModelFacts facts = model_facts(checkpoint);
  const auto row = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{:<26}{}\n", name, value);
  };
  row("model", checkpoint.path().string());
  row("format", format_name(checkpoint));
  if (const std::string* name = checkpoint.metadata().find_string("general.name")) {
    row("name", one_line(*name));
  }
  row("parameters", count_text(facts.params));
  row("size", bytes_text(facts.bytes));
  model::visit_fields(config, [&](std::string_view name, const auto& value) {
    row(name, fmt::format("{}", value));
  });
  for (const LayerGroup& group : layer_groups(config)) {
    row("layers " + ranges_text(group.layers), group.what);
  }
  const std::string tokenizer = tokenizer_name(checkpoint);
  row("tokenizer", tokenizer.empty() ? "none" : tokenizer);
  const formats::DType kv = flags.plan_flags.kv_dtype();
  row("kv_bytes_per_token",
      fmt::format("{} ({})", kv_bytes_per_token(config, kv), formats::dtype_name(kv)));
  if (const uint64_t bytes = state_bytes(config); bytes > 0) {
    row("state_bytes_per_sequence", fmt::format("{} (f32)", bytes));
  }
  text += fmt::format("\n{:<8}{:>9}{:>12}{:>13}\n", "type", "tensors", "parameters", "bytes");
  for (const DTypeShare& share : facts.dtypes) {
    text += fmt::format("{:<8}{:>9}{:>12}{:>13}\n", formats::dtype_name(share.dtype), share.tensors,
                        count_text(share.params), bytes_text(share.bytes));
  }
  if (flags.tensors) {
    text += fmt::format("\n{:<48}{:<8}{:<22}{:>13}\n", "tensor", "type", "shape", "bytes");
    for (const formats::TensorView& tensor : checkpoint.tensors()) {
      text += fmt::format("{:<48}{:<8}{:<22}{:>13}\n", one_line(tensor.name),
                          formats::dtype_name(tensor.dtype), formats::shape_text(tensor.shape),
                          tensor.data.size());
    }
  }
  return text;
}

void print_json(const InspectFlags& flags, const formats::Checkpoint& checkpoint,
                const model::ModelConfig& config, const std::vector<std::string>& plans) {
  const ModelFacts facts = model_facts(checkpoint);
  json object = {
      {"path", checkpoint.path().string()},
      {"format", checkpoint.kind() == formats::CheckpointKind::gguf ? "gguf" : "huggingface"},
      {"parameters", facts.params},
      {"size_bytes", facts.bytes},
      {"kv_bytes_per_token", kv_bytes_per_token(config, flags.plan_flags.kv_dtype())},
      {"state_bytes_per_sequence", state_bytes(config)},
      {"config", json::object()},
      {"layers", json::array()},
      {"types", json::array()}};
  model::visit_fields(config, [&](std::string_view name, const auto& value) {
    object["config"][std::string(name)] = value;
  });
  for (const model::LayerConfig& layer : config.layers) {
    object["layers"].push_back({{"mixer", model::mixer_name(layer.mixer)},
                                {"window", layer.window},
                                {"rope", model::layer_rope_name(layer.rope)},
                                {"num_kv_heads", layer.num_kv_heads},
                                {"head_dim", layer.head_dim},
                                {"intermediate_size", layer.intermediate_size}});
    if (layer.kv_of) object["layers"].back()["kv_of"] = *layer.kv_of;
  }
  for (const DTypeShare& share : facts.dtypes) {
    object["types"].push_back({{"type", formats::dtype_name(share.dtype)},
                               {"tensors", share.tensors},
                               {"parameters", share.params},
                               {"bytes", share.bytes}});
  }
  if (flags.tensors) {
    object["tensors"] = json::array();
    for (const formats::TensorView& tensor : checkpoint.tensors()) {
      object["tensors"].push_back({{"name", tensor.name},
                                   {"type", formats::dtype_name(tensor.dtype)},
                                   {"shape", tensor.shape},
                                   {"bytes", tensor.data.size()}});
    }
  }
  if (flags.plan) {
    object["plans"] = json::array();
    for (const std::string& plan : plans) {
      json lines = json::array();
      std::istringstream stream(plan);
      for (std::string line; std::getline(stream, line);) lines.push_back(line);
      object["plans"].push_back(std::move(lines));
    }
  }
  print(object.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

void run_inspect(const InspectFlags& flags) {
  const formats::Checkpoint checkpoint = formats::Checkpoint::open(flags.model);
  const model::ModelConfig config = model::read_config(checkpoint);
  std::vector<std::string> plans;
  if (flags.plan) {
    const uint32_t asked = flags.plan_flags.context;
    const model::Model model =
        model::load_model(checkpoint, {.context = engine::choose_context(config, asked),
                                       .stated_context = asked,
                                       .kv_dtype = flags.plan_flags.kv_dtype()});
    for (const plan::Plan& plan : build_plans(model, flags.plan_flags)) {
      plan::verify(plan, model.resources);
      plans.push_back(plan::to_string(plan, model.resources));
    }
  } else {
    model::check_tensors(checkpoint);
  }
  if (flags.json) {
    print_json(flags, checkpoint, config, plans);
    return;
  }
  print(text_of(flags, checkpoint, config));
  for (const std::string& plan : plans) print("\n" + plan);
}

}  // namespace

void add_inspect(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("inspect", "show what a model's files hold");
  const auto flags = std::make_shared<InspectFlags>();
  command
      .add_option("model", flags->model,
                  "a .gguf file, or a folder with config.json and *.safetensors")
      ->check(check_path)
      ->required();
  command.add_flag("--plan", flags->plan, "the ops that run it, for prompts and for generation");
  command.add_flag("--tensors", flags->tensors, "every tensor with its type and shape");
  command.add_flag("--json", flags->json, "one JSON object");
  add_plan_flags(command, flags->plan_flags);
  add_verbose_flag(command);
  command.footer(
      "Examples:\n"
      "  wisp inspect model.gguf\n"
      "  wisp inspect Qwen3-0.6B/ --plan --math exact\n"
      "  wisp inspect model.gguf --tensors --json");
  command.callback([flags] { run_inspect(*flags); });
}

}  // namespace wisp::cli
