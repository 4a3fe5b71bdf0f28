#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "formats/dtype.h"
#include "formats/tensor.h"
#include "model/weights.h"

namespace wisp::model {
namespace {

void join(std::string& names, std::string_view name) {
  if (!names.empty()) names += '+';
  names += name;
}

}  // namespace

ExpertMatrix WeightResolver::experts(std::span<const Rows> roles, uint32_t layer,
                                     uint32_t num_experts, uint32_t cols, ExpertLayout layout) {
  switch (layout) {
    case ExpertLayout::single:
      return single_experts(roles, layer, num_experts, cols);
    case ExpertLayout::stacked:
      return stacked_experts(roles, layer, num_experts, cols);
    case ExpertLayout::transposed_interleaved:
      ensure(roles.size() == 1, "gate and up are one tensor");
      return interleaved_experts(roles[0], layer, num_experts, cols);
  }
  return {};
}

ExpertMatrix WeightResolver::add_experts(std::string name,
                                         std::span<const formats::TensorView* const> tensors,
                                         std::span<const Rows> roles, uint32_t num_experts,
                                         uint32_t cols, backend::WeightParts parts) {
  ExpertMatrix result;
  for (const Rows& part : roles) result.rows += part.rows;
  for (const formats::TensorView* tensor : tensors) {
    if (tensor->dtype != tensors[0]->dtype) {
      problems_.push_back(
          fmt::format("tensor '{}' has type {}, '{}' {}: experts of several types "
                      "are not supported",
                      tensor->name, formats::dtype_name(tensor->dtype), tensors[0]->name,
                      formats::dtype_name(tensors[0]->dtype)));
      return result;
    }
  }
  result.weight =
      add({std::move(name), tensors[0]->dtype, num_experts * result.rows, cols}, std::move(parts));
  return result;
}

std::string WeightResolver::starred(Role role, uint32_t layer) const {
  const std::string name = names_(role, layer, 0);
  const std::string next = names_(role, layer, 1);
  const auto number = std::ranges::mismatch(name, next).in1;
  const std::string_view all = name;
  const auto at = static_cast<size_t>(number - name.begin());
  return fmt::format("{}*{}", all.substr(0, at), all.substr(at + 1));
}

ExpertMatrix WeightResolver::single_experts(std::span<const Rows> roles, uint32_t layer,
                                            uint32_t num_experts, uint32_t cols) {
  std::vector<const formats::TensorView*> tensors;
  backend::WeightParts parts;
  for (uint32_t e = 0; e < num_experts; ++e) {
    for (const Rows& part : roles) {
      const uint64_t shape[] = {part.rows, cols};
      const auto* tensor = take(names_(part.role, layer, e) + ".weight", shape, true);
      if (tensor == nullptr) continue;
      tensors.push_back(tensor);
      parts.push_back(tensor->data);
    }
  }
  if (tensors.size() != num_experts * roles.size()) return {};
  std::string joined;
  for (const Rows& part : roles) join(joined, starred(part.role, layer) + ".weight");
  return add_experts(std::move(joined), tensors, roles, num_experts, cols, std::move(parts));
}

ExpertMatrix WeightResolver::stacked_experts(std::span<const Rows> roles, uint32_t layer,
                                             uint32_t num_experts, uint32_t cols) {
  std::vector<const formats::TensorView*> tensors;
  for (const Rows& part : roles) {
    const uint64_t shape[] = {num_experts, part.rows, cols};
    const formats::TensorView* tensor = take(bare_name(part.role, layer), shape, true);
    if (tensor != nullptr) tensors.push_back(tensor);
  }
  const std::optional<plan::WeightId> bias = expert_bias(roles, layer, num_experts);
  if (tensors.size() != roles.size()) return {};
  std::string joined;
  for (const formats::TensorView* tensor : tensors) join(joined, tensor->name);
  backend::WeightParts parts;
  for (uint32_t e = 0; e < num_experts; ++e) {
    for (const formats::TensorView* tensor : tensors) {
      const size_t bytes = tensor->data.size() / num_experts;
      parts.push_back(tensor->data.subspan(e * bytes, bytes));
    }
  }
  ExpertMatrix result =
      add_experts(std::move(joined), tensors, roles, num_experts, cols, std::move(parts));
  result.bias = bias;
  return result;
}

std::optional<plan::WeightId> WeightResolver::expert_bias(std::span<const Rows> roles,
                                                          uint32_t layer, uint32_t num_experts) {
  if (!has_bias(roles, layer)) return {};
  std::vector<std::vector<std::byte>> all;
  uint32_t rows = 0;
  for (const Rows& part : roles) {
    const uint64_t shape[] = {num_experts, part.rows};
    const auto* tensor = take(name(part.role, layer, ".bias"), shape, true);
    if (tensor != nullptr) all.push_back(f32_bytes(*tensor));
    rows += part.rows;
  }
  if (all.size() != roles.size()) return {};
  std::vector<std::byte> bytes;
  for (uint32_t e = 0; e < num_experts; ++e) {
    for (const auto& part : all) {
      const auto own =
          std::span(part).subspan(e * (part.size() / num_experts), part.size() / num_experts);
      bytes.insert(bytes.end(), own.begin(), own.end());
    }
  }
  return add_f32(name(roles[0].role, layer, ".bias"), 1, num_experts * rows, std::move(bytes));
}

// [experts, cols, rows] becomes [experts, rows, cols], which blocks have already; with more than
// one turn (gate and up) rows 0, 2, 4, ... come before 1, 3, 5, ....
ExpertMatrix WeightResolver::interleaved_experts(const Rows& rows, uint32_t layer,
                                                 uint32_t num_experts, uint32_t cols) {
  const formats::TensorView* found = checkpoint_.find(bare_name(rows.role, layer));
  const bool blocks = found != nullptr && formats::is_block_type(found->dtype);
  uint64_t shape[] = {num_experts, cols, rows.rows};
  if (blocks) std::swap(shape[1], shape[2]);
  const uint64_t bias_shape[] = {num_experts, rows.rows};
  const formats::TensorView* tensor = take(bare_name(rows.role, layer), shape, true);
  const formats::TensorView* bias = take(name(rows.role, layer, "_bias"), bias_shape, true);
  if (tensor == nullptr || bias == nullptr) return {};
  const size_t size = formats::dtype_info(tensor->dtype).block_bytes;
  const size_t row_bytes = formats::row_bytes(tensor->dtype, cols);
  const uint32_t turns = rows.role == Role::expert_gate_up ? 2 : 1;
  const auto source_row = [&](uint32_t r) {
    const uint32_t half = rows.rows / turns;
    return r % half * turns + r / half;
  };
  const std::vector<float> bias_values = formats::tensor_to_f32(*bias);
  std::vector<float> biases(bias_values.size());
  std::vector<std::byte>& out = weights_.owned.emplace_back(tensor->data.size());
  for (size_t e = 0; e < num_experts; ++e) {
    const std::byte* from = tensor->data.data() + e * rows.rows * row_bytes;
    std::byte* to = out.data() + e * rows.rows * row_bytes;
    for (uint32_t r = 0; r < rows.rows; ++r) {
      const size_t source = source_row(r);
      biases[e * rows.rows + r] = bias_values[e * rows.rows + source];
      if (blocks) {
        std::memcpy(to + r * row_bytes, from + source * row_bytes, row_bytes);
        continue;
      }
      for (size_t c = 0; c < cols; ++c) {
        std::memcpy(to + (r * cols + c) * size, from + (c * rows.rows + source) * size, size);
      }
    }
  }
  ExpertMatrix result{.rows = rows.rows};
  result.weight = add({tensor->name, tensor->dtype, num_experts * rows.rows, cols}, {out});
  const auto bytes = std::as_bytes(std::span(biases));
  result.bias = add_f32(bias->name, 1, num_experts * rows.rows, {bytes.begin(), bytes.end()});
  return result;
}

}  // namespace wisp::model
