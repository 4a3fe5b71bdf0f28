#include "model/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "formats/dtype.h"
#include "formats/tensor.h"

namespace wisp::model {
namespace {

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

void append(Projection& to, const Projection& from) {
  to.rows += from.rows;
  to.parts.insert(to.parts.end(), from.parts.begin(), from.parts.end());
}

std::vector<std::byte> WeightResolver::f32_bytes(const formats::TensorView& tensor) {
  const std::vector<float> values = formats::tensor_to_f32(tensor);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

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
  if (check_only_ || !tensor->make_bytes) return check_only_ ? nullptr : tensor;
  formats::TensorView& made = made_.emplace_back(*tensor);
  made.data = weights_.owned.emplace_back(
      with_context(fmt::format("tensor '{}'", name), [&] { return tensor->make_bytes(); }));
  return &made;
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

plan::WeightId WeightResolver::padded_matrix(Role role, uint32_t stored, uint32_t rows,
                                             uint32_t cols) {
  const std::string full = name(role, 0, ".weight");
  const formats::TensorView* found = checkpoint_.find(full);
  uint64_t shape[] = {stored == 0 ? rows : stored, cols};
  if (stored == 0 && found != nullptr && !found->shape.empty()) {
    shape[0] = std::clamp<uint64_t>(found->shape[0], 1, rows);
  }
  const formats::TensorView* tensor = take(full, shape, true);
  if (tensor == nullptr) return {};
  backend::WeightParts parts = {tensor->data};
  if (shape[0] < rows) {
    weights_.owned.emplace_back((rows - shape[0]) * formats::row_bytes(tensor->dtype, cols));
    parts.push_back(weights_.owned.back());
  }
  return add({full, tensor->dtype, rows, cols}, std::move(parts));
}

plan::WeightId WeightResolver::vector(Role role, uint32_t layer, uint32_t size) {
  return vector(name(role, layer, ".weight"), size);
}

plan::WeightId WeightResolver::vector(const std::string& full, uint32_t size) {
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

plan::WeightId WeightResolver::conv_taps(Role role, uint32_t layer, uint32_t channels,
                                         uint32_t taps) {
  const std::string full = name(role, layer, ".weight");
  const formats::TensorView* found = checkpoint_.find(full);
  const uint64_t deep[] = {channels, 1, taps};
  const uint64_t flat[] = {channels, taps};
  const bool is_flat = found != nullptr && found->shape.size() == 2;
  const formats::TensorView* tensor = is_flat ? take(full, flat, true) : take(full, deep, true);
  if (tensor == nullptr) return {};
  return add_f32(full, taps, channels, transpose(f32_bytes(*tensor), taps, channels, 4));
}

std::optional<plan::WeightId> WeightResolver::own_bias(Role role, uint32_t layer, uint32_t size,
                                                       std::optional<bool> there) {
  const std::string full = name(role, layer, ".bias");
  if (!there.value_or(checkpoint_.find(full) != nullptr)) return {};
  return vector(full, size);
}

NormWeights WeightResolver::norm(Role role, uint32_t layer, uint32_t size, plan::NormKind kind) {
  NormWeights result{.weight = vector(role, layer, size), .bias = {}};
  if (kind != plan::NormKind::layer) return result;
  const Rows rows[] = {{role, size}};
  if (has_bias(rows, layer)) result.bias = bias(rows, layer);
  return result;
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
      if (tensor == nullptr) continue;
      const std::vector<std::byte> more = f32_bytes(*tensor);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
  }
  return add_f32(full, 1, heads * head_dim, std::move(bytes));
}

bool WeightResolver::has_bias(std::span<const Rows> roles, uint32_t layer) const {
  return std::ranges::any_of(roles, [&](const Rows& part) {
    return checkpoint_.find(name(part.role, layer, ".bias")) != nullptr;
  });
}

std::optional<plan::WeightId> WeightResolver::bias(std::span<const Rows> roles, uint32_t layer) {
  const auto named = [&](const Rows& part) { return name(part.role, layer, ".bias"); };
  std::vector<std::byte> bytes;
  uint32_t rows = 0;
  bool whole = true;
  for (const Rows& part : roles) {
    const uint64_t shape[] = {part.rows};
    const formats::TensorView* tensor = take(named(part), shape, true);
    rows += part.rows;
    whole = whole && tensor != nullptr;
    if (!whole) continue;
    const std::vector<std::byte> part_bytes = f32_bytes(*tensor);
    bytes.insert(bytes.end(), part_bytes.begin(), part_bytes.end());
  }
  if (!whole) return {};
  return add_f32(named(roles[0]), 1, rows, std::move(bytes));
}

uint32_t WeightResolver::element_bytes(std::string_view name, formats::DType dtype) {
  const formats::DTypeInfo& info = formats::dtype_info(dtype);
  if (info.block_elements == 1) return info.block_bytes;
  problems_.push_back(fmt::format("tensor '{}' of type {} cannot be transposed", name, info.name));
  return 0;
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
  const uint32_t size = element_bytes(tensor->name, tensor->dtype);
  if (size == 0) return {};
  weights_.owned.push_back(transpose(tensor->data, rows, cols, size));
  matrix.data = weights_.owned.back();
  return matrix;
}

Projection WeightResolver::projection(std::span<const Rows> roles, uint32_t layer, uint32_t cols,
                                      std::optional<bool> bias) {
  const bool biased = bias.value_or(has_bias(roles, layer));
  std::vector<Matrix> matrices;
  Projection result;
  for (const Rows& part : roles) {
    const std::optional<Matrix> matrix = take_projection(part.role, layer, part.rows, cols);
    if (matrix) matrices.push_back(*matrix);
    result.rows += part.rows;
  }
  if (matrices.size() != roles.size()) {
    if (biased) this->bias(roles, layer);  // so that they are not left over
    return result;
  }
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
    Projection::Part part{.weight = id, .bias = {}, .rows = rows};
    if (biased) part.bias = this->bias(roles.subspan(begin, end - begin), layer);
    result.parts.push_back(part);
    begin = end;
  }
  return result;
}

Projection WeightResolver::select(Role role, uint32_t layer, uint32_t total_rows,
                                  std::span<const RowRange> order, uint32_t cols,
                                  std::optional<bool> biased) {
  Projection result;
  for (const RowRange& range : order) result.rows += range.rows;
  const std::optional<Matrix> matrix = take_projection(role, layer, total_rows, cols);
  const uint64_t bias_shape[] = {total_rows};
  const std::string bias_name = name(role, layer, ".bias");
  const formats::TensorView* bias =
      biased.value_or(true) ? take(bias_name, bias_shape, biased.value_or(false)) : nullptr;
  if (!matrix) return result;
  const size_t row_bytes = matrix->data.size() / total_rows;
  const std::vector<std::byte> all = bias != nullptr ? f32_bytes(*bias) : std::vector<std::byte>{};
  backend::WeightParts parts;
  std::vector<std::byte> bias_bytes;
  for (const RowRange& range : order) {
    parts.push_back(matrix->data.subspan(range.first * row_bytes, range.rows * row_bytes));
    if (bias == nullptr) continue;
    const auto values =
        std::span(all).subspan(range.first * sizeof(float), range.rows * sizeof(float));
    bias_bytes.insert(bias_bytes.end(), values.begin(), values.end());
  }
  Projection::Part part{.weight = {}, .bias = {}, .rows = result.rows};
  part.weight =
      add({std::string(matrix->name), matrix->dtype, result.rows, cols}, std::move(parts));
  if (bias != nullptr) part.bias = add_f32(bias_name, 1, result.rows, std::move(bias_bytes));
  result.parts.push_back(part);
  return result;
}

WeightResolver::LatentHeads WeightResolver::latent_heads(uint32_t layer, uint32_t num_heads,
                                                         const LatentConfig& latent) {
  if (!names_.has(Role::k_b_proj, layer)) return split_kv_b(layer, num_heads, latent);
  const Rows k[] = {{Role::k_b_proj, latent.kv_rank}};
  const Rows v[] = {{Role::v_b_proj, latent.value_dim}};
  return {stacked_experts(k, layer, num_heads, latent.nope_dim).weight,
          stacked_experts(v, layer, num_heads, latent.kv_rank).weight};
}

WeightResolver::LatentHeads WeightResolver::split_kv_b(uint32_t layer, uint32_t num_heads,
                                                       const LatentConfig& latent) {
  const uint32_t head_rows = latent.nope_dim + latent.value_dim;
  const std::optional<Matrix> matrix =
      take_projection(Role::kv_b_proj, layer, num_heads * head_rows, latent.kv_rank);
  if (!matrix) return {};
  const uint32_t size = element_bytes(matrix->name, matrix->dtype);
  if (size == 0) return {};
  const size_t row_bytes = matrix->data.size() / (num_heads * head_rows);
  backend::WeightParts k_parts;
  backend::WeightParts v_parts;
  for (uint32_t h = 0; h < num_heads; ++h) {
    const auto head = matrix->data.subspan(h * head_rows * row_bytes, head_rows * row_bytes);
    weights_.owned.push_back(
        transpose(head.first(latent.nope_dim * row_bytes), latent.kv_rank, latent.nope_dim, size));
    k_parts.push_back(weights_.owned.back());
    v_parts.push_back(head.subspan(latent.nope_dim * row_bytes));
  }
  const std::string name(matrix->name);
  return {add({name + ".k", matrix->dtype, num_heads * latent.kv_rank, latent.nope_dim},
              std::move(k_parts)),
          add({name + ".v", matrix->dtype, num_heads * latent.value_dim, latent.kv_rank},
              std::move(v_parts))};
}

plan::WeightId WeightResolver::bare_vector(Role role, uint32_t layer, uint32_t size) {
  return vector(bare_name(role, layer), size);
}

plan::WeightId WeightResolver::decay_rates(Role role, uint32_t layer, uint32_t rows,
                                           uint32_t cols) {
  const std::string full = bare_name(role, layer);
  const formats::TensorView* found = checkpoint_.find(full);
  const uint64_t deep[] = {rows, cols};
  const uint64_t flat[] = {uint64_t{rows} * cols};
  const bool vector = rows == 1 || cols == 1;
  const bool is_flat = vector && found != nullptr && found->shape.size() == 1;
  const formats::TensorView* tensor = is_flat ? take(full, flat, true) : take(full, deep, true);
  if (tensor == nullptr) return {};
  std::vector<float> values = formats::tensor_to_f32(*tensor);
  if (checkpoint_.kind() == formats::CheckpointKind::huggingface) {
    for (float& value : values) value = -std::exp(value);
  }
  return add_table(full, rows, cols, values);
}

plan::WeightId WeightResolver::shift_taps(Role role, uint32_t layer, uint32_t size) {
  const std::string full = bare_name(role, layer);
  const uint64_t shape[] = {1, 1, size};
  const formats::TensorView* tensor = take(full, shape, true);
  if (tensor == nullptr) return {};
  const std::vector<float> own = formats::tensor_to_f32(*tensor);
  std::vector<float> taps;
  taps.reserve(2 * own.size());
  for (const float m : own) taps.push_back(1.0F - m);
  taps.insert(taps.end(), own.begin(), own.end());
  return add_table(full, 2, size, taps);
}

plan::WeightId WeightResolver::flat_vector(Role role, uint32_t layer, uint32_t size) {
  const std::string full = bare_name(role, layer);
  const formats::TensorView* found = checkpoint_.find(full);
  uint64_t rows = 0;
  if (found != nullptr && found->shape.size() == 2) rows = found->shape[0];
  if (rows == 0 || size % rows != 0) return vector(full, size);
  const uint64_t shape[] = {rows, size / rows};
  const formats::TensorView* tensor = take(full, shape, true);
  if (tensor == nullptr) return {};
  return add_f32(full, 1, size, f32_bytes(*tensor));
}

float WeightResolver::bare_number(Role role, uint32_t layer) {
  const uint64_t shape[] = {1};
  const formats::TensorView* tensor = take(bare_name(role, layer), shape, true);
  return tensor != nullptr ? formats::tensor_to_f32(*tensor)[0] : 0.0F;
}

std::string WeightResolver::bare_name(Role role, uint32_t layer) const {
  const std::string bare = name(role, layer, "");
  return checkpoint_.find(bare) != nullptr ? bare : bare + ".weight";
}

std::vector<float> WeightResolver::values(Role role, uint32_t layer, uint32_t size, bool required) {
  if (!required && !names_.has(role, layer)) return {};
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

Projection WeightResolver::head(uint32_t rows, uint32_t cols) {
  const Rows head[] = {{Role::lm_head, rows}};
  Projection::Part part{.weight = matrix(Role::lm_head, 0, rows, cols), .bias = {}, .rows = rows};
  if (has_bias(head, 0)) part.bias = bias(head, 0);
  return {{part}, rows};
}

void WeightResolver::ignore_layer(uint32_t layer) {
  const std::string norm = names_(Role::attention_norm, layer);
  const std::string number = fmt::format(".{}.", layer);
  const size_t at = norm.find(number);
  if (at == std::string::npos) return;
  const std::string prefix = norm.substr(0, at + number.size());
  for (const formats::TensorView& tensor : checkpoint_.tensors()) {
    if (tensor.name.starts_with(prefix)) used_.insert(tensor.name);
  }
}

void WeightResolver::ignore(Role role, uint32_t layer) {
  for (const std::string_view suffix : {".weight", ".bias"}) {
    used_.insert(name(role, layer, suffix));
  }
}

bool WeightResolver::same(Role a, Role b) const {
  const formats::TensorView* first = checkpoint_.find(name(a, 0, ".weight"));
  const formats::TensorView* second = checkpoint_.find(name(b, 0, ".weight"));
  return first != nullptr && second != nullptr && first->dtype == second->dtype &&
         !first->make_bytes && !second->make_bytes &&
         std::ranges::equal(first->shape, second->shape) &&
         std::ranges::equal(first->data, second->data);
}

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
