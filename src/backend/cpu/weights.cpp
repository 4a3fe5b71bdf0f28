#include "backend/cpu/weights.h"

#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace wisp::backend::cpu {
namespace {

bool must_copy(const plan::Weight& weight, const WeightParts& parts, uint64_t row_bytes) {
  if (weight.dtype != formats::DType::F32) return false;
  for (const auto& part : parts) {
    if (reinterpret_cast<uintptr_t>(part.data()) % alignof(float) != 0) return true;
    if (part.size() % row_bytes != 0) return true;
  }
  return false;
}

WeightView view_weight(const plan::Weight& weight, const WeightParts& parts,
                       std::vector<Buffer>& copies) {
  WeightView view{
      weight.dtype, weight.rows, weight.cols, formats::row_bytes(weight.dtype, weight.cols), {}};
  const uint64_t expected = checked_mul(view.row_bytes, weight.rows, "size");
  uint64_t found = 0;
  for (const auto& part : parts) found = checked_add(found, part.size(), "size");
  if (found != expected || found == 0) {
    fail("expected {} bytes for {}[{}, {}], found {}", expected, formats::dtype_name(weight.dtype),
         weight.rows, weight.cols, found);
  }
  if (must_copy(weight, parts, view.row_bytes)) {
    std::byte* to = copies.emplace_back(found).data();
    view.parts.push_back({weight.rows, to});
    for (const auto& part : parts) {
      if (!part.empty()) std::memcpy(to, part.data(), part.size());
      to += part.size();
    }
    return view;
  }
  uint64_t end_row = 0;
  for (const auto& part : parts) {
    if (part.size() % view.row_bytes != 0) {
      fail("a part of {} bytes does not hold whole rows of {} bytes", part.size(), view.row_bytes);
    }
    end_row += part.size() / view.row_bytes;
    if (!part.empty()) view.parts.push_back({static_cast<uint32_t>(end_row), part.data()});
  }
  return view;
}

}  // namespace

WeightView WeightView::slice(uint32_t first, uint32_t count) const {
  WeightView view{dtype, count, cols, row_bytes, {}};
  for (uint32_t done = 0; done < count;) {
    const Part& part = parts[part_of(first + done)];
    const uint32_t taken = std::min(count - done, part.end_row - first - done);
    view.parts.push_back({done + taken, row(first + done)});
    done += taken;
  }
  return view;
}

std::vector<WeightView> view_weights(const plan::Resources& resources,
                                     const std::vector<WeightParts>& weights,
                                     std::vector<Buffer>& copies) {
  if (weights.size() != resources.weights.size()) {
    fail("expected {} weights, found {}", resources.weights.size(), weights.size());
  }
  std::vector<WeightView> views;
  views.reserve(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const plan::Weight& weight = resources.weights[i];
    with_context(fmt::format("weight '{}'", weight.name),
                 [&] { views.push_back(view_weight(weight, weights[i], copies)); });
  }
  return views;
}

}  // namespace wisp::backend::cpu
