#include "formats/imatrix.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "formats/byte_reader.h"
#include "formats/gguf.h"
#include "formats/gguf_layout.h"
#include "formats/quoted.h"

namespace wisp::formats {

namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

void add_entry(Imatrix& imatrix, std::string_view name, Importance values) {
  for (const float value : values) {
    if (!std::isfinite(value) || value < 0.0f) {
      fail("{}: expected finite squares, found {}", in_quotes(name), value);
    }
  }
  if (!imatrix.emplace(name, std::move(values)).second) fail("{} is there twice", in_quotes(name));
}

// Sums of squares over `counts` samples of each matrix.
Importance mean_squares(std::vector<float> sums, std::span<const float> counts) {
  if (counts.empty() || sums.size() % counts.size() != 0) {
    fail("{} sums of {} matrices", sums.size(), counts.size());
  }
  const size_t columns = sums.size() / counts.size();
  for (size_t i = 0; i < sums.size(); ++i) {
    const float count = counts[i / columns];
    sums[i] = count > 0.0f ? sums[i] / count : 1.0f;
  }
  return sums;
}

// Tensors "<name>.in_sum2", [matrices, columns], and "<name>.counts", one a matrix.
Imatrix from_gguf(std::span<const std::byte> bytes) {
  const Gguf gguf = parse_gguf(bytes);
  std::map<std::string_view, const TensorView*> tensors;
  for (const TensorView& tensor : gguf.tensors) tensors.emplace(tensor.name, &tensor);
  Imatrix imatrix;
  for (const TensorView& sums : gguf.tensors) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string name = sums.name.substr(0, sums.name.size() - kSums.size());
    const auto counts = tensors.find(name + std::string(kCounts));
    if (counts == tensors.end()) fail("{}: no counts", in_quotes(name));
    Importance values = with_context(in_quotes(name), [&] {
      return mean_squares(tensor_to_f32(sums), tensor_to_f32(*counts->second));
    });
    add_entry(imatrix, name, std::move(values));
  }
  if (imatrix.empty()) fail("a GGUF file without an importance matrix (no tensor '*.in_sum2')");
  return imatrix;
}

// i32 entries; for each: i32 length and name, i32 calls, i32 values and f32 values, which are
// means times calls. What follows tells where they come from.
Imatrix from_binary(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto count = [&](std::string_view what) {
    const auto value = reader.number<int32_t>(what);
    if (value < 0) fail("{}: {}", what, value);
    return static_cast<uint32_t>(value);
  };
  const uint32_t entries = count("number of entries");
  if (entries == 0) fail("no entries");
  Imatrix imatrix;
  for (uint32_t entry = 0; entry < entries; ++entry) {
    const auto name = reader.take(count("length of a name"), "name");
    const auto calls = std::max(1.0f, static_cast<float>(count("number of calls")));
    const auto data = reader.take(uint64_t{4} * count("number of values"), "values");
    Importance values(data.size() / sizeof(float));
    if (values.empty()) fail("an entry without values");
    std::memcpy(values.data(), data.data(), data.size());
    for (float& value : values) value /= calls;
    add_entry(imatrix, {reinterpret_cast<const char*>(name.data()), name.size()},
              std::move(values));
  }
  return imatrix;
}

}  // namespace

Imatrix parse_imatrix(std::span<const std::byte> bytes) {
  const bool is_gguf = bytes.size() >= sizeof(kGgufMagic) &&
                       std::memcmp(bytes.data(), kGgufMagic, sizeof(kGgufMagic)) == 0;
  if (is_gguf) return from_gguf(bytes);
  return with_context("not an importance matrix of llama-imatrix",
                      [&] { return from_binary(bytes); });
}

Imatrix read_imatrix(const std::filesystem::path& path) {
  const MappedFile file(path);
  return with_context(path.string(), [&] { return parse_imatrix(file.bytes()); });
}

}  // namespace wisp::formats
