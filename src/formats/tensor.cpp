#include "formats/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "base/checked.h"
#include "base/error.h"
#include "formats/quoted.h"

namespace wisp::formats {

std::string shape_text(std::span<const uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void require_disjoint(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) {
    if (!tensor.data.empty()) order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return std::less<>()(a->data.data(), b->data.data());
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorView& before = *order[i - 1];
    if (std::less<>()(order[i]->data.data(), before.data.data() + before.data.size())) {
      fail("tensors {} and {} overlap", in_quotes(before.name), in_quotes(order[i]->name));
    }
  }
}

std::vector<float> tensor_to_f32(const TensorView& tensor) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  if (info.dequantize == nullptr) {
    fail("tensor {}: expected a floating-point type, found {}", in_quotes(tensor.name), info.name);
  }
  const auto count = checked_cast<size_t>(element_count(tensor.shape), "elements of a tensor");
  ensure(tensor.data.size() == tensor_bytes(tensor.dtype, tensor.shape),
         "a tensor holds its bytes");
  std::vector<float> values(count);
  info.dequantize(tensor.data.data(), values.data(), count);
  return values;
}

}  // namespace wisp::formats
