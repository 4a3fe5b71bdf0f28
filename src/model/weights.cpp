#include "model/weights.h"

#include <algorithm>

#include "base/error.h"
#include "formats/dtype.h"
#include "formats/tensor.h"

namespace wisp::model {
namespace {

std::vector<std::byte> f32_bytes(const formats::TensorView& tensor) {
  const std::vector<float> values = formats::tensor_to_f32(tensor);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string WeightResolver::name(Role role, uint32_t layer, std::string_view suffix) const {
  return tensor_name(role, layer, checkpoint_.kind()) + std::string(suffix);
}

bool WeightResolver::has(Role role, uint32_t layer) const {
  return checkpoint_.find(name(role, layer, ".weight")) != nullptr;
}

const formats::TensorView* WeightResolver::take(const std::string& name,
                                                std::span<const uint64_t> shape, bool required) {
  const formats::TensorView* tensor = checkpoint_.find(name);
  if (tensor == nullptr) {
    if (required) problems_.push_back(fmt::format("tensor '{}' is missing", name));
    return nullptr;
  }
  used_.insert(name);
  if (!std::ranges::equal(tensor->shape, shape)) {
    problems_.push_back(fmt::format("tensor '{}' has shape {}, expected {}", name,
                                    formats::shape_text(tensor->shape),
                                    formats::shape_text(shape)));
    return nullptr;
  }
  if (!formats::dtype_info(tensor->dtype).is_weight) {
    problems_.push_back(fmt::format("tensor '{}' has type {}, which is no weight type", name,
                                    formats::dtype_name(tensor->dtype)));
    return nullptr;
  }
  return tensor;
}

plan::WeightId WeightResolver::add(plan::Weight weight, backend::WeightParts parts) {
  weights_.list.push_back(std::move(weight));
  weights_.parts.push_back(std::move(parts));
  return plan::WeightId{static_cast<uint32_t>(weights_.list.size() - 1)};
}

plan::WeightId WeightResolver::add_f32(std::string name, uint32_t rows, uint32_t cols,
                                       std::vector<std::byte> bytes) {
  weights_.owned.push_back(std::move(bytes));
  return add({std::move(name), formats::DType::F32, rows, cols}, {weights_.owned.back()});
}

plan::WeightId WeightResolver::matrix(Role role, uint32_t layer, uint32_t rows, uint32_t cols) {
  const std::string full = name(role, layer, ".weight");
  const uint64_t shape[] = {rows, cols};
  const formats::TensorView* tensor = take(full, shape, true);
  if (tensor == nullptr) return {};  // finish() throws
  return add({full, tensor->dtype, rows, cols}, {tensor->data});
}

plan::WeightId WeightResolver::vector(Role role, uint32_t layer, uint32_t size) {
  const std::string full = name(role, layer, ".weight");
  const uint64_t shape[] = {size};
  const formats::TensorView* tensor = take(full, shape, true);
  if (tensor == nullptr) return {};
  return add_f32(full, 1, size, f32_bytes(*tensor));
}

std::optional<plan::WeightId> WeightResolver::optional_vector(Role role, uint32_t layer,
                                                              uint32_t size) {
  if (!has(role, layer)) return {};
  return vector(role, layer, size);
}

std::optional<plan::WeightId> WeightResolver::bias(std::span<const Rows> roles, uint32_t layer) {
  std::vector<std::byte> bytes;
  bool any = false;
  for (const Rows& part : roles) {
    const uint64_t shape[] = {part.rows};
    const formats::TensorView* tensor = take(name(part.role, layer, ".bias"), shape, false);
    any = any || tensor != nullptr;
    const std::vector<std::byte> part_bytes =
        tensor != nullptr ? f32_bytes(*tensor) : std::vector<std::byte>(part.rows * sizeof(float));
    bytes.insert(bytes.end(), part_bytes.begin(), part_bytes.end());
  }
  if (!any) return {};
  uint32_t rows = 0;
  for (const Rows& part : roles) rows += part.rows;
  return add_f32(name(roles[0].role, layer, ".bias"), 1, rows, std::move(bytes));
}

Projection WeightResolver::projection(std::span<const Rows> roles, uint32_t layer, uint32_t cols) {
  std::vector<const formats::TensorView*> tensors;
  Projection result;
  for (const Rows& part : roles) {
    const uint64_t shape[] = {part.rows, cols};
    tensors.push_back(take(name(part.role, layer, ".weight"), shape, true));
    result.rows += part.rows;
  }
  if (std::ranges::find(tensors, nullptr) != tensors.end()) return result;
  for (size_t begin = 0; begin < roles.size();) {
    size_t end = begin;
    uint32_t rows = 0;
    backend::WeightParts parts;
    std::string joined;
    for (; end < roles.size() && tensors[end]->dtype == tensors[begin]->dtype; ++end) {
      rows += roles[end].rows;
      parts.push_back(tensors[end]->data);
      joined += fmt::format("{}{}", joined.empty() ? "" : "+", tensors[end]->name);
    }
    const plan::WeightId id = add({joined, tensors[begin]->dtype, rows, cols}, std::move(parts));
    result.parts.push_back({id, bias(roles.subspan(begin, end - begin), layer), rows});
    begin = end;
  }
  return result;
}

std::vector<float> WeightResolver::values(Role role, uint32_t layer, uint32_t size) {
  if (tensor_name(role, layer, checkpoint_.kind()).empty() || !has(role, layer)) return {};
  const uint64_t shape[] = {size};
  const formats::TensorView* tensor = take(name(role, layer, ".weight"), shape, true);
  if (tensor == nullptr) return {};
  return formats::tensor_to_f32(*tensor);
}

plan::WeightId WeightResolver::add_table(std::string name, uint32_t rows, uint32_t cols,
                                         std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return add_f32(std::move(name), rows, cols, {bytes.begin(), bytes.end()});
}

void WeightResolver::ignore(Role role) { used_.insert(name(role, 0, ".weight")); }

Weights WeightResolver::finish() && {
  for (const formats::TensorView& tensor : checkpoint_.tensors()) {
    if (!used_.contains(std::string(tensor.name)) && !is_redundant(tensor.name)) {
      problems_.push_back(fmt::format("tensor '{}' is not used by this model", tensor.name));
    }
  }
  if (!problems_.empty()) {
    const std::string more =
        problems_.size() > 1 ? fmt::format(" (and {} more like it)", problems_.size() - 1) : "";
    fail("{}: {}{}", checkpoint_.path().string(), problems_[0], more);
  }
  return std::move(weights_);
}

}  // namespace wisp::model
