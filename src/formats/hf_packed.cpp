// Integers packed in 32-bit words: GPTQ, AWQ and the pack-quantized form of compressed-tensors.
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/error.h"
#include "formats/codec.h"
#include "formats/hf_parts.h"
#include "formats/quoted.h"

namespace wisp::formats {
namespace {

using nlohmann::json;

constexpr auto kFloats = {DType::F16, DType::BF16, DType::F32};

template <typename T>
T field_or(const json& config, const char* name, T usual) {
  const auto found = config.find(name);
  if (found == config.end() || found->is_null()) return usual;
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    fail("{} is {}", name, found->dump());
  }
}

uint32_t bits_of(const json& config, std::initializer_list<uint32_t> known) {
  const auto bits = field_or<int64_t>(config, "bits", field_or<int64_t>(config, "w_bit", 4));
  for (const uint32_t one : known) {
    if (bits == one) return one;
  }
  fail("weights of {} bits are not supported", bits);
}

void expect_dims(const TensorView& tensor, size_t count) {
  if (tensor.shape.size() == count) return;
  fail("tensor {} has shape {}, expected {} dimensions", in_quotes(tensor.name),
       shape_text(tensor.shape), count);
}

// Field `i` of a 32-bit word, `width` bits wide, the lowest first.
uint32_t packed_field(const TensorView& words, size_t word, size_t i, uint32_t width) {
  return load<uint32_t>(words.data.data() + word * 4) >> (i * width) & ((1U << width) - 1);
}

// Throws Error unless g_idx gives column c the group c / group.
void expect_plain_order(const TensorView& g_idx, uint64_t group) {
  const uint64_t count = g_idx.data.size() / 4;
  for (uint64_t c = 0; c < count; ++c) {
    const auto found = load<int32_t>(g_idx.data.data() + c * 4);
    if (std::cmp_not_equal(found, c / group)) {
      fail("tensor {}: columns in another order (desc_act, actorder) are not supported",
           in_quotes(g_idx.name));
    }
  }
}

// Columns of a group: `asked`, or all of a row where it is -1 or 0. Throws Error where it does not
// divide the row.
uint64_t group_of(int64_t asked, uint64_t cols, std::string_view name) {
  const uint64_t group = asked <= 0 ? cols : static_cast<uint64_t>(asked);
  if (group == 0 || cols % group != 0) {
    fail("{}: rows of {} values are not whole groups of {}", name, cols, group);
  }
  return group;
}

// A matrix in its parts' place: `fill` sets the codes, scales and zeros of one that has its sizes.
void add_matrix(Parts& parts, const std::string& name, uint32_t bits, GroupedMatrix sizes,
                const std::function<void(GroupedMatrix&)>& fill) {
  const DType dtype = grouped_type(bits, sizes.cols, sizes.group);
  parts.add({.name = name + ".weight",
             .dtype = dtype,
             .shape = {sizes.rows, sizes.cols},
             .data = {},
             .make_bytes = [=] {
               GroupedMatrix m = sizes;
               m.codes.resize(m.rows * m.cols);
               fill(m);
               return grouped_rows(m, dtype);
             }});
}

// `value(r, g)` of every row and group, as [rows, groups].
std::vector<float> of_groups(const GroupedMatrix& m, auto&& value) {
  const uint64_t groups = m.cols / m.group;
  std::vector<float> out;
  out.reserve(m.rows * groups);
  for (uint64_t r = 0; r < m.rows; ++r) {
    for (uint64_t g = 0; g < groups; ++g) out.push_back(value(r, g));
  }
  return out;
}

// scales [groups, rows] as [rows, groups].
std::vector<float> transposed(const TensorView& scales, const GroupedMatrix& m) {
  const std::vector<float> values = tensor_to_f32(scales);
  return of_groups(m, [&](uint64_t r, uint64_t g) { return values[g * m.rows + r]; });
}

}  // namespace

// qweight [cols / n, rows]: word (c / n, r) has column c in field c % n, n fields a word; qzeros
// [groups, rows / n] likewise along rows, each less 1 in the first version of the format.
// Frantar et al., GPTQ; the layout is AutoGPTQ's.
void join_gptq(const json& config, Parts& parts) {
  const uint32_t bits = bits_of(config, {4, 8});
  const uint32_t n = 32 / bits;
  const auto form = field_or<std::string>(config, "checkpoint_format", "gptq");
  if (form != "gptq" && form != "gptq_v2") fail("checkpoint_format {} is not supported", form);
  const uint32_t less = form == "gptq" ? 1 : 0;
  for (const std::string& name : parts.with_suffix(".qweight")) {
    const TensorView* found = parts.find(name + ".qweight");
    expect_dims(*found, 2);
    GroupedMatrix sizes{.rows = found->shape[1],
                        .cols = checked_mul(found->shape[0], n, "columns of a matrix")};
    sizes.group = group_of(field_or<int64_t>(config, "group_size", -1), sizes.cols, name);
    if (sizes.rows % n != 0) fail("tensor {}: {} rows", in_quotes(found->name), sizes.rows);
    const uint64_t groups = sizes.cols / sizes.group;
    const uint64_t shape[] = {sizes.cols / n, sizes.rows};
    const uint64_t zeros_shape[] = {groups, sizes.rows / n};
    const uint64_t scales_shape[] = {groups, sizes.rows};
    const uint64_t order_shape[] = {sizes.cols};
    const TensorView codes = parts.take(name + ".qweight", shape, {DType::I32});
    const TensorView zeros = parts.take(name + ".qzeros", zeros_shape, {DType::I32});
    const TensorView scales = parts.take(name + ".scales", scales_shape, kFloats);
    if (const auto* order = parts.take_if(name + ".g_idx", order_shape, {DType::I32})) {
      expect_plain_order(*order, sizes.group);
    }
    add_matrix(parts, name, bits, sizes, [=](GroupedMatrix& m) {
      for (uint64_t c = 0; c < m.cols; ++c) {
        for (uint64_t r = 0; r < m.rows; ++r) {
          m.codes[r * m.cols + c] =
              static_cast<uint8_t>(packed_field(codes, c / n * m.rows + r, c % n, bits));
        }
      }
      m.scales = transposed(scales, m);
      m.zeros = of_groups(m, [&](uint64_t r, uint64_t g) {
        const uint32_t zero = packed_field(zeros, g * (m.rows / n) + r / n, r % n, bits) + less;
        return static_cast<float>(zero & ((1U << bits) - 1));
      });
    });
  }
}

// qweight [cols, rows / 8]: word (c, r / 8) has rows 8 j + 0, 2, 4, 6, 1, 3, 5, 7 in its fields;
// qzeros [groups, rows / 8] likewise. Lin et al., AWQ; the layout is AutoAWQ's "gemm".
void join_awq(const json& config, Parts& parts) {
  const uint32_t bits = bits_of(config, {4});
  const auto version = field_or<std::string>(config, "version", "gemm");
  if (version != "gemm" && version != "GEMM") fail("version {} is not supported", version);
  for (const std::string& name : parts.with_suffix(".qweight")) {
    const TensorView* found = parts.find(name + ".qweight");
    expect_dims(*found, 2);
    GroupedMatrix sizes{.rows = checked_mul(found->shape[1], 8, "rows of a matrix"),
                        .cols = found->shape[0]};
    sizes.group = group_of(
        field_or<int64_t>(config, "group_size", field_or<int64_t>(config, "q_group_size", 128)),
        sizes.cols, name);
    const uint64_t groups = sizes.cols / sizes.group;
    const uint64_t zeros_shape[] = {groups, sizes.rows / 8};
    const uint64_t scales_shape[] = {groups, sizes.rows};
    const TensorView codes = parts.take(name + ".qweight", found->shape, {DType::I32});
    const TensorView zeros = parts.take(name + ".qzeros", zeros_shape, {DType::I32});
    const TensorView scales = parts.take(name + ".scales", scales_shape, kFloats);
    add_matrix(parts, name, bits, sizes, [=](GroupedMatrix& m) {
      constexpr std::array<uint8_t, 8> kField = {0, 4, 1, 5, 2, 6, 3, 7};  // of row 8 j + i
      for (uint64_t c = 0; c < m.cols; ++c) {
        for (uint64_t r = 0; r < m.rows; ++r) {
          m.codes[r * m.cols + c] = static_cast<uint8_t>(
              packed_field(codes, c * (m.rows / 8) + r / 8, kField[r % 8], bits));
        }
      }
      m.scales = transposed(scales, m);
      m.zeros = of_groups(m, [&](uint64_t r, uint64_t g) {
        return static_cast<float>(
            packed_field(zeros, g * (m.rows / 8) + r / 8, kField[r % 8], bits));
      });
    });
  }
}

// weight_packed [rows, cols / n] with column c in field c % n, weight_scale [rows, groups],
// weight_zero_point [rows / n, groups] with row r in field r % n; codes and zeros are offset by
// half of their range, and a missing zero is the middle. compressed-tensors, pack_quantized.py.
void join_packed(const std::string& name, Parts& parts) {
  const TensorView* found = parts.find(name + ".weight_packed");
  const TensorView* scale = parts.find(name + ".weight_scale");
  if (scale == nullptr) fail("tensor {} is missing", in_quotes(name + ".weight_scale"));
  expect_dims(*found, 2);
  expect_dims(*scale, 2);
  const uint64_t two[] = {2};
  const TensorView& shape = parts.take(name + ".weight_shape", two, {DType::I64, DType::I32});
  const bool wide = shape.dtype == DType::I64;
  const auto dim = [&](size_t i) {
    uint64_t value = 0;
    std::memcpy(&value, shape.data.data() + i * (wide ? 8 : 4), wide ? 8 : 4);
    return value;
  };
  GroupedMatrix sizes{.rows = dim(0), .cols = dim(1)};
  const uint64_t words = found->shape[1];
  if (sizes.rows != found->shape[0] || sizes.cols == 0 || words == 0 ||
      (sizes.cols != 8 * words && sizes.cols != 4 * words)) {
    fail("tensor {} has shape {}, expected that of [{}, {}] in fields of 4 or 8 bits",
         in_quotes(found->name), shape_text(found->shape), sizes.rows, sizes.cols);
  }
  const uint32_t bits = sizes.cols == 8 * words ? 4 : 8;
  const uint32_t n = 32 / bits;
  const uint64_t groups = scale->shape[1];
  if (groups == 0 || sizes.cols % groups != 0) {
    fail("tensor {}: {} groups in a row of {}", in_quotes(scale->name), groups, sizes.cols);
  }
  sizes.group = sizes.cols / groups;
  const uint64_t scale_shape[] = {sizes.rows, groups};
  const uint64_t zeros_shape[] = {ceil_div(sizes.rows, n), groups};
  const uint64_t order_shape[] = {sizes.cols};
  const TensorView codes = parts.take(found->name, found->shape, {DType::I32});
  const TensorView scales = parts.take(scale->name, scale_shape, kFloats);
  const TensorView* zeros = parts.take_if(name + ".weight_zero_point", zeros_shape, {DType::I32});
  if (const auto* order = parts.take_if(name + ".weight_g_idx", order_shape, {DType::I32})) {
    expect_plain_order(*order, sizes.group);
  }
  const TensorView zero_words = zeros != nullptr ? *zeros : TensorView{};
  add_matrix(parts, name, bits, sizes, [=](GroupedMatrix& m) {
    for (uint64_t i = 0; i < m.codes.size(); ++i) {
      m.codes[i] = static_cast<uint8_t>(packed_field(codes, i / n, i % n, bits));
    }
    m.scales = tensor_to_f32(scales);
    m.zeros = of_groups(m, [&](uint64_t r, uint64_t g) {
      const uint32_t zero = zero_words.data.empty()
                                ? 1U << (bits - 1)
                                : packed_field(zero_words, r / n * groups + g, r % n, bits);
      return static_cast<float>(zero);
    });
  });
}

}  // namespace wisp::formats
