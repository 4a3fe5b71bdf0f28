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
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "formats/checkpoint.h"
#include "model/config.h"
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

// Puts the rows of `from` behind those of `to`.
void append(Projection& to, const Projection& from);

// Of a norm that is there: nullopt where it only normalises, or adds nothing.
struct NormWeights {
  std::optional<plan::WeightId> weight;
  std::optional<plan::WeightId> bias;
};

// The matrices of all experts, one after another.
struct ExpertMatrix {
  plan::WeightId weight{};  // [experts * rows, cols]
  std::optional<plan::WeightId> bias;
  uint32_t rows = 0;  // of one expert
};

// Takes tensors one by one; finish() reports every missing, misshapen and unused one.
class WeightResolver {
 public:
  // `checkpoint` must outlive the Weights. `transposed`: projections are stored [cols, rows].
  // `check_only`: tensors are looked up, but not read, and finish() gives nothing to run with.
  WeightResolver(const formats::Checkpoint& checkpoint, TensorNames names, bool transposed,
                 bool check_only)
      : checkpoint_(checkpoint),
        names_(std::move(names)),
        transposed_(transposed),
        check_only_(check_only) {}

  bool has(Role role, uint32_t layer) const { return names_.has(role, layer); }

  // A matrix [rows, cols] in its stored type.
  plan::WeightId matrix(Role role, uint32_t layer, uint32_t rows, uint32_t cols);

  // A matrix of which the first `stored` rows are in the file (0: as many as it has) and the others
  // are zeros.
  plan::WeightId padded_matrix(Role role, uint32_t stored, uint32_t rows, uint32_t cols);

  // A matrix as f32: a table that kernels index.
  plan::WeightId table(Role role, uint32_t rows, uint32_t cols);

  // A norm over `size` elements; a layer norm may have a bias.
  NormWeights norm(Role role, uint32_t layer, uint32_t size, plan::NormKind kind);

  // A vector as f32.
  plan::WeightId vector(Role role, uint32_t layer, uint32_t size);

  // The taps of a convolution of each channel by itself, stored [channels, taps] or [channels, 1,
  // taps], as f32 [taps, channels].
  plan::WeightId conv_taps(Role role, uint32_t layer, uint32_t channels, uint32_t taps);

  // The bias of a vector or convolution; `there` says whether it is; absent: as the file has it.
  std::optional<plan::WeightId> own_bias(Role role, uint32_t layer, uint32_t size,
                                         std::optional<bool> there);

  // The weights of a norm of heads, each head's own: all heads' one after another, which lie in one
  // tensor or in one for each head.
  plan::WeightId head_norms(Role role, uint32_t layer, uint32_t heads, uint32_t head_dim);

  // Projections side by side: {role, rows} each. `bias` says whether they have biases; absent: as
  // the file has them.
  struct Rows {
    Role role;
    uint32_t rows;
  };
  Projection projection(std::span<const Rows> roles, uint32_t layer, uint32_t cols,
                        std::optional<bool> bias = {});

  // Rows of a tensor of `total_rows` rows, in the order of the ranges, and of its bias likewise.
  struct RowRange {
    uint32_t first;
    uint32_t rows;
  };
  Projection select(Role role, uint32_t layer, uint32_t total_rows, std::span<const RowRange> order,
                    uint32_t cols, std::optional<bool> bias = {});

  // kv_b_proj of latent attention, [heads * (nope_dim + value_dim), kv_rank], as matrices of heads:
  // that for keys transposed, [heads * kv_rank, nope_dim], and [heads * value_dim, kv_rank].
  struct LatentHeads {
    plan::WeightId k;
    plan::WeightId v;
  };
  LatentHeads latent_heads(uint32_t layer, uint32_t num_heads, const LatentConfig& latent);

  // Of each expert the rows of all `roles`.
  ExpertMatrix experts(std::span<const Rows> roles, uint32_t layer, uint32_t num_experts,
                       uint32_t cols, ExpertLayout layout);

  // -exp(A_log) as f32 [rows, cols]; Hugging Face checkpoints have A_log. A name without a suffix.
  plan::WeightId decay_rates(Role role, uint32_t layer, uint32_t rows, uint32_t cols);

  // The share m of a column in a mixture with the column before it, stored [1, 1, size], as the
  // taps of a convolution: 1 - m and m.
  plan::WeightId shift_taps(Role role, uint32_t layer, uint32_t size);

  // A vector that some files store in rows of a matrix.
  plan::WeightId flat_vector(Role role, uint32_t layer, uint32_t size);

  // A vector whose tensor's name has no suffix, and one number of such a name.
  plan::WeightId bare_vector(Role role, uint32_t layer, uint32_t size);
  float bare_number(Role role, uint32_t layer);

  // The values of a tensor; empty when there is none.
  std::vector<float> values(Role role, uint32_t layer, uint32_t size, bool required);

  // A table computed at load.
  plan::WeightId add_table(std::string name, uint32_t rows, uint32_t cols,
                           std::span<const float> values);

  // The head, which is stored as rows in every family.
  Projection head(uint32_t rows, uint32_t cols);

  // Whether both are in the file with the same type, shape and values.
  bool same(Role a, Role b) const;

  // Counts a tensor and its bias, or all of a layer, as used though no plan reads it.
  void ignore(Role role, uint32_t layer = 0);
  void ignore_layer(uint32_t layer);

  // Throws Error naming the missing tensors, those of a wrong shape, and those nobody asked for.
  Weights finish() &&;

 private:
  // A projection's rows, one after another.
  struct Matrix {
    std::string_view name;
    formats::DType dtype;
    std::span<const std::byte> data;
  };

  static std::vector<std::byte> f32_bytes(const formats::TensorView& tensor);
  // nullptr: a problem, or nothing is to be read.
  const formats::TensorView* take(const std::string& name, std::span<const uint64_t> shape,
                                  bool required);
  std::optional<Matrix> take_projection(Role role, uint32_t layer, uint32_t rows, uint32_t cols);
  plan::WeightId add(plan::Weight weight, backend::WeightParts parts);
  plan::WeightId add_f32(std::string name, uint32_t rows, uint32_t cols,
                         std::vector<std::byte> bytes);
  plan::WeightId vector(const std::string& full, uint32_t size);
  // Of a type that can be transposed; else 0, and a problem.
  uint32_t element_bytes(std::string_view name, formats::DType dtype);
  LatentHeads split_kv_b(uint32_t layer, uint32_t num_heads, const LatentConfig& latent);
  std::string bare_name(Role role, uint32_t layer) const;  // with ".weight" where GGUF has it
  ExpertMatrix single_experts(std::span<const Rows> roles, uint32_t layer, uint32_t num_experts,
                              uint32_t cols);
  ExpertMatrix stacked_experts(std::span<const Rows> roles, uint32_t layer, uint32_t num_experts,
                               uint32_t cols);
  ExpertMatrix interleaved_experts(const Rows& rows, uint32_t layer, uint32_t num_experts,
                                   uint32_t cols);
  // The name of a tensor that each expert has one of, with a star for the expert.
  std::string starred(Role role, uint32_t layer) const;
  ExpertMatrix add_experts(std::string name, std::span<const formats::TensorView* const> tensors,
                           std::span<const Rows> roles, uint32_t num_experts, uint32_t cols,
                           backend::WeightParts parts);
  std::optional<plan::WeightId> expert_bias(std::span<const Rows> roles, uint32_t layer,
                                            uint32_t num_experts);
  bool has_bias(std::span<const Rows> roles, uint32_t layer) const;  // any of them
  std::optional<plan::WeightId> bias(std::span<const Rows> roles, uint32_t layer);
  std::string name(Role role, uint32_t layer, std::string_view suffix) const;

  const formats::Checkpoint& checkpoint_;
  TensorNames names_;
  bool transposed_;
  bool check_only_;
  std::unordered_set<std::string> used_;
  std::vector<std::string> problems_;
  Weights weights_;
  std::list<formats::TensorView> made_;  // of tensors without bytes, with those in weights_.owned
};

}  // namespace wisp::model
