// What the readers of quantised folders share.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/grouped.h"
#include "formats/tensor.h"

namespace wisp::formats {

// The tensors of a folder, of which readers take the parts of matrices.
class Parts {
 public:
  explicit Parts(std::vector<TensorView>& tensors);

  // Names that end in `suffix`, without it, in the order of the files.
  std::vector<std::string> with_suffix(std::string_view suffix) const;

  // nullptr: there is none. Taken parts are gone once the matrix is there.
  const TensorView* find(const std::string& name) const;
  // Throws Error unless the tensor is there with this shape and one of the types.
  using Types = std::initializer_list<DType>;
  const TensorView& take(const std::string& name, std::span<const uint64_t> shape, Types types);
  // The same where it may be missing; nullptr then.
  const TensorView* take_if(const std::string& name, std::span<const uint64_t> shape, Types types);
  void drop(const std::string& name) { taken_.push_back(name); }

  void add(TensorView matrix) { made_.push_back(std::move(matrix)); }

  // Puts the matrices in the place of their parts.
  void finish();

 private:
  std::vector<TensorView>& tensors_;
  std::unordered_map<std::string, size_t> index_;
  std::vector<std::string> taken_;
  std::vector<TensorView> made_;
};

void join_gptq(const nlohmann::json& config, Parts& parts);
void join_awq(const nlohmann::json& config, Parts& parts);
void join_packed(const std::string& name, Parts& parts);  // one matrix of compressed-tensors
void join_compressed(const nlohmann::json& config, Parts& parts);
void join_fp8(const nlohmann::json& config, Parts& parts);
void join_mxfp4(const nlohmann::json& config, Parts& parts);

}  // namespace wisp::formats
