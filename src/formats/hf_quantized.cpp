#include "formats/hf_quantized.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "formats/hf_parts.h"
#include "formats/json.h"
#include "formats/quoted.h"

namespace wisp::formats {
namespace {

using nlohmann::json;

struct Method {
  std::string_view name;
  void (*join)(const json& config, Parts& parts);
};

constexpr Method kMethods[] = {
    {"gptq", join_gptq}, {"awq", join_awq},     {"compressed-tensors", join_compressed},
    {"fp8", join_fp8},   {"mxfp4", join_mxfp4},
};

void join(const json& config, std::vector<TensorView>& tensors) {
  const auto method = config.find("quant_method");
  if (method == config.end() || !method->is_string()) fail("quant_method is missing");
  const std::string name = method->get<std::string>();
  std::string known;
  for (const Method& one : kMethods) {
    if (one.name == name) {
      Parts parts(tensors);
      one.join(config, parts);
      return parts.finish();
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
  }
  fail("quant_method {} is not supported (there are: {})", in_quotes(name), known);
}

}  // namespace

void join_quantized_tensors(const std::filesystem::path& folder, std::vector<TensorView>& tensors) {
  const std::filesystem::path path = folder / "config.json";
  const json config = read_json_object<json>(path, {.python_numbers = true});
  const auto field = config.find("quantization_config");
  if (field == config.end() || field->is_null()) return;
  with_context(fmt::format("{}: field 'quantization_config'", path.string()), [&] {
    if (!field->is_object()) fail("expected an object, found {}", field->type_name());
    join(*field, tensors);
  });
}

Parts::Parts(std::vector<TensorView>& tensors) : tensors_(tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) index_.emplace(tensors[i].name, i);
}

std::vector<std::string> Parts::with_suffix(std::string_view suffix) const {
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors_) {
    if (tensor.name.ends_with(suffix)) {
      names.push_back(tensor.name.substr(0, tensor.name.size() - suffix.size()));
    }
  }
  return names;
}

const TensorView* Parts::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const TensorView* Parts::take_if(const std::string& name, std::span<const uint64_t> shape,
                                 Types types) {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) return nullptr;
  if (!std::ranges::equal(tensor->shape, shape)) {
    fail("tensor {} has shape {}, expected {}", in_quotes(name), shape_text(tensor->shape),
         shape_text(shape));
  }
  if (std::ranges::find(types, tensor->dtype) == types.end()) {
    fail("tensor {} has type {}, expected {}", in_quotes(name), dtype_name(tensor->dtype),
         dtype_name(*types.begin()));
  }
  taken_.push_back(name);
  return tensor;
}

const TensorView& Parts::take(const std::string& name, std::span<const uint64_t> shape,
                              Types types) {
  const TensorView* tensor = take_if(name, shape, types);
  if (tensor == nullptr) fail("tensor {} is missing", in_quotes(name));
  return *tensor;
}

void Parts::finish() {
  const std::unordered_set<std::string> gone(taken_.begin(), taken_.end());
  std::erase_if(tensors_, [&](const TensorView& t) { return gone.contains(t.name); });
  std::ranges::move(made_, std::back_inserter(tensors_));
}

}  // namespace wisp::formats
