#include "model/weights.h"

#include <algorithm>
#include <array>
#include <cstring>

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

// The matrix [rows, cols] of which `data` is the transpose, elements of `size` bytes.
std::vector<std::byte> transpose(std::span<const std::byte> data, size_t rows, size_t cols,
                                 size_t size) {
  std::vector<std::byte> out(data.size());
  for (size_t c = 0; c < cols; ++c) {
    for (size_t r = 0; r < rows; ++r) {
      std::memcpy(&out[(r * cols + c) * size], &data[(c * rows + r) * size], size);
    }
  }
  return out;
}

}  // namespace

std::string WeightResolver::name(Role role, uint32_t layer, std::string_view suffix) const {
  return names_(role, layer) + std::string(suffix);
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

plan::WeightId WeightResolver::table(Role role, uint32_t rows, uint32_t cols) {
  const std::string full = name(role, 0, ".weight");
  const uint64_t shape[] = {rows, cols};
  const formats::TensorView* tensor = take(full, shape, true);
  if (tensor == nullptr) return {};
  return add_f32(full, rows, cols, f32_bytes(*tensor));
}

NormWeights WeightResolver::norm(Role role, uint32_t layer, uint32_t size, plan::NormKind kind) {
  NormWeights result{.weight = vector(role, layer, size), .bias = {}};
  if (kind != plan::NormKind::layer) return result;
  const Rows rows[] = {{role, size}};
  result.bias = bias(rows, layer);
  return result;
}

plan::WeightId WeightResolver::head_norm(Role role, uint32_t layer, uint32_t head_dim) {
  return vector(role, layer, head_dim);
}

plan::WeightId WeightResolver::head_norms(Role role, uint32_t layer, uint32_t heads,
                                          uint32_t head_dim) {
  const std::string full = name(role, layer, ".weight");
  const uint64_t shape[] = {heads, head_dim};
  std::vector<std::byte> bytes;
  if (checkpoint_.find(full) != nullptr) {
    const formats::TensorView* tensor = take(full, shape, true);
    if (tensor != nullptr) bytes = f32_bytes(*tensor);
  } else {
    for (uint32_t head = 0; head < heads; ++head) {
      const std::string one = name(role, layer, fmt::format(".norms.{}.weight", head));
      const formats::TensorView* tensor = take(one, std::span(shape).subspan(1), true);
      if (tensor == nullptr) return {};
      const std::vector<std::byte> more = f32_bytes(*tensor);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
  }
  return add_f32(full, 1, heads * head_dim, std::move(bytes));
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

std::optional<WeightResolver::Matrix> WeightResolver::take_projection(Role role, uint32_t layer,
                                                                      uint32_t rows,
                                                                      uint32_t cols) {
  std::array<uint64_t, 2> shape = {rows, cols};
  if (transposed_) std::swap(shape[0], shape[1]);
  const formats::TensorView* tensor = take(name(role, layer, ".weight"), shape, true);
  if (tensor == nullptr) return {};
  Matrix matrix{tensor->name, tensor->dtype, tensor->data};
  if (!transposed_) return matrix;
  const formats::DTypeInfo& info = formats::dtype_info(tensor->dtype);
  if (info.block_elements != 1) {
    problems_.push_back(
        fmt::format("tensor '{}' of type {} cannot be transposed", tensor->name, info.name));
    return {};
  }
  weights_.owned.push_back(transpose(tensor->data, rows, cols, info.block_bytes));
  matrix.data = weights_.owned.back();
  return matrix;
}

Projection WeightResolver::projection(std::span<const Rows> roles, uint32_t layer, uint32_t cols) {
  std::vector<Matrix> matrices;
  Projection result;
  for (const Rows& part : roles) {
    const std::optional<Matrix> matrix = take_projection(part.role, layer, part.rows, cols);
    if (matrix) matrices.push_back(*matrix);
    result.rows += part.rows;
  }
  if (matrices.size() != roles.size()) return result;
  for (size_t begin = 0; begin < roles.size();) {
    size_t end = begin;
    uint32_t rows = 0;
    backend::WeightParts parts;
    std::string joined;
    for (; end < roles.size() && matrices[end].dtype == matrices[begin].dtype; ++end) {
      rows += roles[end].rows;
      parts.push_back(matrices[end].data);
      joined += fmt::format("{}{}", joined.empty() ? "" : "+", matrices[end].name);
    }
    const plan::WeightId id = add({joined, matrices[begin].dtype, rows, cols}, std::move(parts));
    result.parts.push_back({id, bias(roles.subspan(begin, end - begin), layer), rows});
    begin = end;
  }
  return result;
}

Projection WeightResolver::fused(Role role, uint32_t layer, std::span<const RowRange> order,
                                 uint32_t cols) {
  Projection result;
  for (const RowRange& range : order) result.rows += range.rows;
  const std::optional<Matrix> matrix = take_projection(role, layer, result.rows, cols);
  const uint64_t bias_shape[] = {result.rows};
  const std::string bias_name = name(role, layer, ".bias");
  const formats::TensorView* bias = take(bias_name, bias_shape, false);
  if (!matrix) return result;
  const size_t row_bytes = matrix->data.size() / result.rows;
  backend::WeightParts parts;
  std::vector<std::byte> bias_bytes;
  const std::vector<std::byte> all = bias != nullptr ? f32_bytes(*bias) : bias_bytes;
  for (const RowRange& range : order) {
    parts.push_back(matrix->data.subspan(range.first * row_bytes, range.rows * row_bytes));
    if (bias == nullptr) continue;
    const auto values =
        std::span(all).subspan(range.first * sizeof(float), range.rows * sizeof(float));
    bias_bytes.insert(bias_bytes.end(), values.begin(), values.end());
  }
  Projection::Part part{.rows = result.rows};
  part.weight =
      add({std::string(matrix->name), matrix->dtype, result.rows, cols}, std::move(parts));
  if (bias != nullptr) part.bias = add_f32(bias_name, 1, result.rows, std::move(bias_bytes));
  result.parts.push_back(part);
  return result;
}

std::vector<float> WeightResolver::values(Role role, uint32_t layer, uint32_t size) {
  if (!names_.has(role, layer)) return {};
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
