#include "model/quantize.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "formats/gguf.h"
#include "formats/quantize.h"
#include "formats/quoted.h"

namespace wisp::model {

namespace {

using formats::DType;
using formats::TensorView;

constexpr uint64_t kQuantizationVersion = 2;
// Values between two looks at the progress.
constexpr uint64_t kSlab = uint64_t{1} << 22;

// A tensor as equally long rows, some to each matrix of a stack.
struct Rows {
  uint64_t count = 0;
  uint64_t columns = 0;
  uint64_t in_matrix = 0;
};

Rows rows_of(const TensorView& tensor) {
  const uint64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const uint64_t count = formats::element_count(tensor.shape) / columns;
  const size_t dims = tensor.shape.size();
  return {count, columns, dims >= 2 ? tensor.shape[dims - 2] : 1};
}

class Quantizer {
 public:
  Quantizer(const QuantizeOptions& options, ThreadPool& pool, uint64_t total)
      : options_(options), pool_(pool), total_(total), rows_(pool.size()) {}

  // The tensor's bytes in `dtype`, valid until the next call.
  std::span<const std::byte> convert(const TensorView& tensor, DType dtype,
                                     std::span<const float> importance) {
    if (dtype == tensor.dtype) {
      check_finite(tensor);
      return tensor.data;
    }
    blocks_.resize(formats::tensor_bytes(dtype, tensor.shape));
    const Rows rows = rows_of(tensor);
    const uint64_t row_bytes = formats::row_bytes(dtype, rows.columns);
    for_rows(tensor, [&](uint64_t row, std::span<const float> values) {
      const std::span<const float> weights =
          importance.empty()
              ? importance
              : importance.subspan(row / rows.in_matrix * rows.columns, rows.columns);
      formats::encode_row(dtype, values, weights, blocks_.data() + row * row_bytes);
    });
    return blocks_;
  }

 private:
  void check_finite(const TensorView& tensor) {
    if (formats::dtype_info(tensor.dtype).dequantize == nullptr) return;
    for_rows(tensor, [](uint64_t, std::span<const float> values) {
      for (size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) fail("column {}: {} is not a finite number", i, values[i]);
      }
    });
  }

  // Calls body(row, values) for all rows, on all threads.
  template <typename Body>
  void for_rows(const TensorView& tensor, const Body& body) {
    const Rows rows = rows_of(tensor);
    const formats::DTypeInfo& info = formats::dtype_info(tensor.dtype);
    const uint64_t row_bytes = formats::row_bytes(tensor.dtype, rows.columns);
    const uint64_t slab = std::max<uint64_t>(1, kSlab / rows.columns);
    const uint64_t grain = std::max<uint64_t>(1, slab / (8 * pool_.size()));
    for (auto& row : rows_) row.resize(rows.columns);
    for (uint64_t first = 0; first < rows.count; first += slab) {
      const uint64_t count = std::min(slab, rows.count - first);
      pool_.parallel_for(count, grain, [&](size_t begin, size_t end, size_t worker) {
        std::vector<float>& values = rows_[worker];
        for (size_t row = first + begin; row < first + end; ++row) {
          info.dequantize(tensor.data.data() + row * row_bytes, values.data(), values.size());
          with_context(fmt::format("row {}", row), [&] { body(row, values); });
        }
      });
      done_ += count * rows.columns;
      if (options_.progress) options_.progress(done_, total_);
    }
  }

  const QuantizeOptions& options_;
  ThreadPool& pool_;
  uint64_t total_;
  uint64_t done_ = 0;
  std::vector<std::vector<float>> rows_;  // one a worker
  std::vector<std::byte> blocks_;
};

formats::Metadata new_metadata(const formats::Metadata& old, const QuantizeMix& mix) {
  formats::Metadata metadata;
  for (const auto& [key, value] : old.values()) {
    if (!key.starts_with("split.")) metadata.set(key, value);
  }
  metadata.set("general.file_type", int64_t{mix.file_type});
  metadata.set("general.quantization_version", int64_t{kQuantizationVersion});
  return metadata;
}

// What the imatrix has for the tensor: nothing where it has no entry. Embeddings are looked up, not
// multiplied, so that an entry of their name is of another matrix when it does not fit.
std::span<const float> importance_of(const TensorView& tensor, const formats::Imatrix* imatrix) {
  if (imatrix == nullptr) return {};
  const auto found = imatrix->find(tensor.name);
  if (found == imatrix->end()) return {};
  const Rows rows = rows_of(tensor);
  const uint64_t expected = rows.columns * (rows.count / rows.in_matrix);
  if (found->second.size() == expected) return found->second;
  if (tensor.name == "token_embd.weight") return {};
  fail("the importance matrix is of another model: expected {} values, found {}", expected,
       found->second.size());
}

}  // namespace

QuantizeReport quantize(const formats::Checkpoint& from, formats::OutputFile& to,
                        const QuantizeOptions& options, ThreadPool& pool) {
  const std::string path = from.path().string();
  const std::vector<DType> types = with_context(
      path, [&] { return quantized_types(from, options.mix, options.imatrix != nullptr); });
  QuantizeReport report;
  for (const TensorView& tensor : from.tensors()) {
    report.weights += formats::element_count(tensor.shape);
  }
  Quantizer quantizer(options, pool, report.weights);
  std::vector<formats::GgufTensor> tensors;
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorView& tensor = from.tensors()[i];
    const DType dtype = types[i];
    const std::string context = path + ": tensor " + formats::in_quotes(tensor.name);
    report.bytes_before += tensor.data.size();
    report.bytes_after += formats::tensor_bytes(dtype, tensor.shape);
    std::span<const float> importance;
    if (dtype != tensor.dtype) {
      importance = with_context(context, [&] { return importance_of(tensor, options.imatrix); });
      ++report.changed;
      report.twice += formats::is_block_type(tensor.dtype) ? 1 : 0;
      report.without_importance += importance.empty() ? 1 : 0;
    }
    tensors.push_back({.name = tensor.name,
                       .dtype = dtype,
                       .shape = tensor.shape,
                       .data = [&quantizer, &tensor, dtype, importance, context] {
                         return with_context(
                             context, [&] { return quantizer.convert(tensor, dtype, importance); });
                       }});
  }
  formats::write_gguf(to, new_metadata(from.metadata(), options.mix), tensors);
  return report;
}

}  // namespace wisp::model
