// Resolving a checkpoint's tensors into the weights of a plan: names, shapes, types, and what is
// left over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "backend/backend.h"
#include "formats/checkpoint.h"
#include "model/tensor_map.h"
#include "plan/plan.h"

namespace wisp::model {

// A weight list with the bytes of each; vectors that had to be converted live in `owned`.
struct Weights {
  std::vector<plan::Weight> list;
  std::vector<backend::WeightParts> parts;  // into the checkpoint or `owned`
  std::list<std::vector<std::byte>> owned;
};

// Rows of one projection, or of several side by side: weights of one type are one matrix, else one
// for each.
struct Projection {
  struct Part {
    plan::WeightId weight;
    std::optional<plan::WeightId> bias;
    uint32_t rows = 0;
  };
  std::vector<Part> parts;
  uint32_t rows = 0;  // of all parts
};

// Takes tensors one by one; finish() reports every missing, misshapen and unused one.
class WeightResolver {
 public:
  // `checkpoint` must outlive the Weights.
  explicit WeightResolver(const formats::Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  bool has(Role role, uint32_t layer = 0) const;

  // A matrix [rows, cols] in its stored type.
  plan::WeightId matrix(Role role, uint32_t layer, uint32_t rows, uint32_t cols);

  // A vector as f32. `optional`: nullopt when the checkpoint has none.
  plan::WeightId vector(Role role, uint32_t layer, uint32_t size);
  std::optional<plan::WeightId> optional_vector(Role role, uint32_t layer, uint32_t size);

  // Projections side by side with their biases, where they have any: {role, rows} each.
  struct Rows {
    Role role;
    uint32_t rows;
  };
  Projection projection(std::span<const Rows> roles, uint32_t layer, uint32_t cols);

  // The values of an optional tensor; empty when there is none.
  std::vector<float> values(Role role, uint32_t layer, uint32_t size);

  // A table computed at load.
  plan::WeightId add_table(std::string name, uint32_t rows, uint32_t cols,
                           std::span<const float> values);

  // Counts a tensor as used though no plan reads it.
  void ignore(Role role);

  // Throws Error naming the missing tensors, those of a wrong shape, and those nobody asked for.
  Weights finish() &&;

 private:
  const formats::TensorView* take(const std::string& name, std::span<const uint64_t> shape,
                                  bool required);
  plan::WeightId add(plan::Weight weight, backend::WeightParts parts);
  plan::WeightId add_f32(std::string name, uint32_t rows, uint32_t cols,
                         std::vector<std::byte> bytes);
  std::optional<plan::WeightId> bias(std::span<const Rows> roles, uint32_t layer);
  std::string name(Role role, uint32_t layer, std::string_view suffix) const;

  const formats::Checkpoint& checkpoint_;
  std::unordered_set<std::string> used_;
  std::vector<std::string> problems_;
  Weights weights_;
};

}  // namespace wisp::model
