// Weights of a byte each, 8-bit floats or integers, with scales; and MXFP4.
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/error.h"
#include "formats/hf_parts.h"
#include "formats/quoted.h"

namespace wisp::formats {
namespace {

using nlohmann::json;

constexpr auto kFloats = {DType::F32, DType::BF16, DType::F16};

// How far scales reach: [rows, cols] of each.
struct Reach {
  uint64_t rows = 0;
  uint64_t cols = 0;
};

// From the shape of the scales: one for all ([] or [1]), one a row ([rows] or [rows, 1]), or one a
// block of `block`.
Reach reach_of(const TensorView& scale, const TensorView& weight, Reach block) {
  const uint64_t rows = weight.shape[0];
  const uint64_t cols = weight.shape[1];
  const std::vector<uint64_t>& shape = scale.shape;
  const uint64_t count = element_count(shape);
  if (count == 1) return {rows, cols};
  if (shape[0] == rows && count == rows) return {1, cols};
  if (shape.size() == 2 && shape[0] == rows && count > 0 && cols % shape[1] == 0) {
    return {1, cols / shape[1]};
  }
  if (shape.size() == 2 && block.rows != 0 && block.cols != 0 &&
      shape[0] == ceil_div(rows, block.rows) && shape[1] == ceil_div(cols, block.cols)) {
    return block;
  }
  fail("tensor {} has shape {}, which does not fit that of {}, {}", in_quotes(scale.name),
       shape_text(shape), in_quotes(weight.name), shape_text(weight.shape));
}

// Groups in which no scale changes: a row's, cut at its end.
uint64_t group_within(uint64_t cols, uint64_t reach) {
  return reach >= cols ? cols : std::gcd(cols, reach);
}

// Values with such a reach, for the groups of m.
std::vector<float> spread(const std::vector<float>& values, Reach reach, const GroupedMatrix& m) {
  const uint64_t across = ceil_div(m.cols, reach.cols);
  const uint64_t groups = m.cols / m.group;
  std::vector<float> out(m.rows * groups);
  for (uint64_t i = 0; i < out.size(); ++i) {
    out[i] = values[i / groups / reach.rows * across + i % groups * m.group / reach.cols];
  }
  return out;
}

// Codes are offset by 128; without zero points zero is 0.
std::vector<float> zeros_of(const TensorView& zeros, size_t count) {
  std::vector<float> out(count, 128.0F);
  for (size_t i = 0; i < zeros.data.size(); ++i) {
    out[i] += static_cast<float>(static_cast<int8_t>(zeros.data[i]));
  }
  return out;
}

// NAME.weight of bytes with the scales `scale_name`, and zeros beside integers.
void join_bytes(Parts& parts, const std::string& name, const std::string& scale_name, Reach block) {
  const TensorView weight = *parts.find(name + ".weight");
  const TensorView* found = parts.find(scale_name);
  if (weight.shape.size() != 2 || element_count(weight.shape) == 0 || found->shape.size() > 2) {
    fail("tensor {} has shape {}, expected a matrix", in_quotes(weight.name),
         shape_text(weight.shape));
  }
  const Reach reach = reach_of(*found, weight, block);
  const TensorView scale = parts.take(scale_name, found->shape, kFloats);
  parts.take(weight.name, weight.shape, {DType::F8_E4M3, DType::I8});
  const bool floats = weight.dtype == DType::F8_E4M3;
  const TensorView* zeros =
      floats ? nullptr : parts.take_if(name + ".weight_zero_point", scale.shape, {DType::I8});
  const TensorView zero_bytes = zeros != nullptr ? *zeros : TensorView{};
  const GroupedMatrix sizes{.rows = weight.shape[0],
                            .cols = weight.shape[1],
                            .group = group_within(weight.shape[1], reach.cols)};
  const DType dtype =
      floats ? float8_type(sizes.cols, sizes.group) : grouped_type(8, sizes.cols, sizes.group);
  parts.add(
      {.name = weight.name, .dtype = dtype, .shape = weight.shape, .data = {}, .make_bytes = [=] {
         GroupedMatrix m = sizes;
         m.codes.resize(m.rows * m.cols);
         std::memcpy(m.codes.data(), weight.data.data(), m.codes.size());
         const std::vector<float> scales = tensor_to_f32(scale);
         m.scales = spread(scales, reach, m);
         if (floats) return float8_rows(m, dtype);
         for (uint8_t& code : m.codes) code ^= 128;
         m.zeros = spread(zeros_of(zero_bytes, scales.size()), reach, m);
         return grouped_rows(m, dtype);
       }});
}

Reach block_of(const json& config, const char* name) {
  const auto found = config.find(name);
  if (found == config.end() || found->is_null()) return {};
  if (!found->is_array() || found->size() != 2 || !(*found)[0].is_number_unsigned() ||
      !(*found)[1].is_number_unsigned()) {
    fail("{} is {}, expected two numbers", name, found->dump());
  }
  return {(*found)[0].get<uint64_t>(), (*found)[1].get<uint64_t>()};
}

}  // namespace

// DeepSeek-V3's form: weight and weight_scale_inv, by which values are multiplied in spite of its
// name, one a block of weight_block_size.
void join_fp8(const json& config, Parts& parts) {
  const Reach block = block_of(config, "weight_block_size");
  for (const char* suffix : {".weight_scale_inv", ".weight_scale"}) {
    for (const std::string& name : parts.with_suffix(suffix)) {
      if (parts.find(name + ".weight") == nullptr) {
        fail("tensor {} is missing", in_quotes(name + ".weight"));
      }
      join_bytes(parts, name, name + suffix, block);
      parts.drop(name + ".input_scale");
      parts.drop(name + ".activation_scale");
    }
  }
}

// Each matrix says by its tensors what it is.
void join_compressed(const json& config, Parts& parts) {
  Reach block;
  const auto groups = config.find("config_groups");
  if (groups != config.end() && groups->is_object()) {
    for (const auto& [key, group] : groups->items()) {
      if (!group.is_object() || !group.contains("weights") || !group["weights"].is_object())
        continue;
      const Reach own = block_of(group["weights"], "block_structure");
      if (own.rows != 0) block = own;
    }
  }
  for (const std::string& name : parts.with_suffix(".weight_packed")) join_packed(name, parts);
  for (const std::string& name : parts.with_suffix(".weight_scale")) {
    const TensorView* weight = parts.find(name + ".weight");
    if (weight == nullptr) continue;  // packed
    join_bytes(parts, name, name + ".weight_scale", block);
    parts.drop(name + ".input_scale");
    parts.drop(name + ".input_zero_point");
  }
}

// gpt-oss: NAME_blocks [experts, rows, groups, 16], of which byte i has value 2 i in its low
// nibble, and NAME_scales [experts, rows, groups], as blocks of MXFP4.
void join_mxfp4(const json&, Parts& parts) {
  for (const std::string& name : parts.with_suffix("_blocks")) {
    const TensorView* found = parts.find(name + "_blocks");
    if (found->shape.size() != 4 || found->shape[3] != 16) {
      fail("tensor {} has shape {}, expected [experts, rows, groups, 16]", in_quotes(found->name),
           shape_text(found->shape));
    }
    const std::vector<uint64_t> shape(found->shape.begin(), found->shape.end() - 1);
    const TensorView codes = parts.take(name + "_blocks", found->shape, {DType::U8});
    const TensorView scales = parts.take(name + "_scales", shape, {DType::U8});
    parts.add({.name = name,
               .dtype = DType::MXFP4,
               .shape = {shape[0], shape[1], checked_mul(shape[2], 32, "columns of a matrix")},
               .data = {},
               .make_bytes = [=] {
                 std::vector<std::byte> out(scales.data.size() * 17);
                 for (size_t block = 0; block < scales.data.size(); ++block) {
                   std::byte* to = &out[block * 17];
                   const std::byte* from = &codes.data[block * 16];
                   to[0] = scales.data[block];
                   const auto value = [&](size_t i) {
                     return from[i / 2] >> (i % 2 * 4) & std::byte{15};
                   };
                   for (size_t i = 0; i < 16; ++i) to[1 + i] = value(i) | value(i + 16) << 4;
                 }
                 return out;
               }});
  }
}

}  // namespace wisp::formats
