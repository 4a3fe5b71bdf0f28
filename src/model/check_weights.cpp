#include "model/check_weights.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "formats/dtype.h"

namespace wisp::model {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
constexpr size_t kPieceBytes = size_t{1} << 18;

void keep_least(std::atomic<uint64_t>& least, uint64_t value) {
  uint64_t known = least.load();
  while (value < known && !least.compare_exchange_weak(known, value)) {
  }
}

// The first value that is not finite, counted along the rows; kNone: all are.
uint64_t first_bad_value(const plan::Weight& weight, const backend::WeightParts& parts,
                         ThreadPool& pool) {
  const formats::DTypeInfo& info = formats::dtype_info(weight.dtype);
  const size_t row_bytes = formats::row_bytes(weight.dtype, weight.cols);
  const size_t grain = std::max<size_t>(1, kPieceBytes / row_bytes);
  std::atomic<uint64_t> least = kNone;
  uint64_t before = 0;  // rows
  for (const auto& part : parts) {
    pool.parallel_for(part.size() / row_bytes, grain, [&](size_t begin, size_t end, size_t) {
      std::vector<float> values(weight.cols);
      for (size_t row = begin; row < end; ++row) {
        info.dequantize(part.data() + row * row_bytes, values.data(), values.size());
        const auto bad = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
        if (bad == values.end()) continue;
        keep_least(least, (before + row) * weight.cols + (bad - values.begin()));
        return;
      }
    });
    before += part.size() / row_bytes;
  }
  return least;
}

}  // namespace

void check_values(const Weights& weights, ThreadPool& pool,
                  const std::function<void(uint64_t, uint64_t)>& progress) {
  uint64_t total = 0;
  for (const backend::WeightParts& parts : weights.parts) {
    for (const auto& part : parts) total += part.size();
  }
  uint64_t done = 0;
  uint64_t count = 0;
  std::string first;
  for (size_t i = 0; i < weights.list.size(); ++i) {
    const plan::Weight& weight = weights.list[i];
    const uint64_t bad = first_bad_value(weight, weights.parts[i], pool);
    for (const auto& part : weights.parts[i]) done += part.size();
    if (progress) progress(done, total);
    if (bad == kNone || count++ > 0) continue;
    const formats::DTypeInfo& info = formats::dtype_info(weight.dtype);
    first =
        fmt::format("weight '{}': row {} holds a NaN or an infinity in block {} ({})", weight.name,
                    bad / weight.cols, bad % weight.cols / info.block_elements, info.name);
  }
  if (count == 0) return;
  fail("{}{}", first, count > 1 ? fmt::format(" (and {} more weights do)", count - 1) : "");
}

}  // namespace wisp::model
