#include "model_runs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/safetensors.h"
#include "model/model.h"

namespace wisp::engine {
namespace {

const std::filesystem::path kModels = std::filesystem::path(WISP_SOURCE_DIR) / "tests/data/models";

bool in_blocks(const formats::Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors(), [](const formats::TensorView& t) {
    return formats::is_block_type(t.dtype);
  });
}

}  // namespace

std::vector<std::string> golden_names(bool folders) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    if (!entry.is_directory()) continue;
    if (folders && std::filesystem::exists(entry.path() / "model.gguf")) continue;
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> plain_names() {
  std::vector<std::string> names = golden_names(true);
  std::erase_if(names, [](const std::string& name) {
    return in_blocks(formats::Checkpoint::open(kModels / name));
  });
  return names;
}

Golden load_golden(const std::string& name) {
  Golden golden;
  const auto folder = kModels / name;
  const auto gguf = folder / "model.gguf";
  golden.model = std::filesystem::exists(gguf) ? gguf : folder;
  const formats::Checkpoint checkpoint = formats::Checkpoint::open(golden.model);
  golden.max_positions = model::read_config(checkpoint).max_position_embeddings;
  golden.in_blocks = in_blocks(checkpoint);
  const auto file = formats::open_safetensors(folder / "golden.safetensors");
  for (const formats::TensorView& t : file.tensors) {
    const auto copy = [&](auto& out) {
      out.resize(t.data.size() / sizeof(out[0]));
      std::memcpy(out.data(), t.data.data(), t.data.size());
    };
    if (t.name == "tokens") copy(golden.tokens);
    if (t.name == "greedy") copy(golden.greedy);
    if (t.name == "logits") {
      copy(golden.logits);
      golden.vocab = t.shape[1];
    }
  }
  double sum = 0;
  double squares = 0;
  for (const float x : golden.logits) {
    sum += x;
    squares += double{x} * x;
  }
  const auto count = static_cast<double>(golden.logits.size());
  golden.std = static_cast<float>(std::sqrt(squares / count - sum / count * (sum / count)));
  return golden;
}

std::vector<Output> run_all(Engine& engine, const std::vector<Request>& requests,
                            const std::vector<uint32_t>& delays) {
  std::vector<Output> outputs(requests.size());
  std::map<RequestId, size_t> index;
  size_t added = 0;
  for (uint32_t step = 0; added < requests.size() || engine.busy(); ++step) {
    for (size_t i = 0; i < requests.size(); ++i) {
      if ((delays.empty() ? 0 : delays[i]) == step) {
        index[engine.add(requests[i])] = i;
        ++added;
      }
    }
    for (const Event& event : engine.step()) {
      Output& out = outputs[index.at(event.request)];
      if (event.token) out.tokens.push_back(*event.token);
      out.logits.insert(out.logits.end(), event.logits.begin(), event.logits.end());
      if (event.finish != FinishReason::none) out.finish = event.finish;
      if (!event.error.empty()) out.error = event.error;
    }
  }
  return outputs;
}

}  // namespace wisp::engine
