#include "formats/dtype.h"

#include <array>
#include <string>

#include "base/checked.h"
#include "base/error.h"
#include "formats/codec.h"
#include "formats/quoted.h"

namespace wisp::formats {

namespace {

using enum DType;
constexpr auto kNoGguf = std::nullopt;

// In the order of the enum.
// clang-format off
constexpr DTypeInfo kDTypes[] = {
    // type, weight?, name, block elements, bytes, GGUF id, safetensors name, decode, encode, WGSL
    {F32,  true,  "F32",  1,   4,   0,  "F32",  dequantize_f32,  quantize_f32,  "codec/f32.wgsl"},
    {F16,  true,  "F16",  1,   2,   1,  "F16",  dequantize_f16,  quantize_f16,  "codec/f16.wgsl"},
    {BF16, true,  "BF16", 1,   2,   30, "BF16", dequantize_bf16, quantize_bf16, "codec/bf16.wgsl"},
    {F64,  false, "F64",  1,   8,   28, "F64",  nullptr, nullptr, ""},
    {I8,   false, "I8",   1,   1,   24, "I8",   nullptr, nullptr, ""},
    {I16,  false, "I16",  1,   2,   25, "I16",  nullptr, nullptr, ""},
    {I32,  false, "I32",  1,   4,   26, "I32",  nullptr, nullptr, ""},
    {I64,  false, "I64",  1,   8,   27, "I64",  nullptr, nullptr, ""},
    {U8,   false, "U8",   1,   1,   kNoGguf, "U8",   nullptr, nullptr, ""},
    {U16,  false, "U16",  1,   2,   kNoGguf, "U16",  nullptr, nullptr, ""},
    {U32,  false, "U32",  1,   4,   kNoGguf, "U32",  nullptr, nullptr, ""},
    {U64,  false, "U64",  1,   8,   kNoGguf, "U64",  nullptr, nullptr, ""},
    {BOOL, false, "BOOL", 1,   1,   kNoGguf, "BOOL", nullptr, nullptr, ""},
    {Q4_0, true,  "Q4_0", 32,  18,  2,  "",     dequantize_q4_0, quantize_q4_0, "codec/q4_0.wgsl"},
    {Q4_1, true,  "Q4_1", 32,  20,  3,  "",     dequantize_q4_1, quantize_q4_1, "codec/q4_1.wgsl"},
    {Q5_0, true,  "Q5_0", 32,  22,  6,  "",     dequantize_q5_0, nullptr, "codec/q5_0.wgsl"},
    {Q5_1, true,  "Q5_1", 32,  24,  7,  "",     dequantize_q5_1, nullptr, "codec/q5_1.wgsl"},
    {Q8_0, true,  "Q8_0", 32,  34,  8,  "",     dequantize_q8_0, quantize_q8_0, "codec/q8_0.wgsl"},
    {Q2_K, true,  "Q2_K", 256, 84,  10, "",     dequantize_q2_k, nullptr, "codec/q2_k.wgsl"},
    {Q3_K, true,  "Q3_K", 256, 110, 11, "",     dequantize_q3_k, nullptr, "codec/q3_k.wgsl"},
    {Q4_K, true,  "Q4_K", 256, 144, 12, "",     dequantize_q4_k, nullptr, "codec/q4_k.wgsl"},
    {Q5_K, true,  "Q5_K", 256, 176, 13, "",     dequantize_q5_k, nullptr, "codec/q5_k.wgsl"},
    {Q6_K, true,  "Q6_K", 256, 210, 14, "",     dequantize_q6_k, nullptr, "codec/q6_k.wgsl"},
    {IQ1_S,   true,  "IQ1_S",   256, 50,  19, "", dequantize_iq1_s,   nullptr, "codec/iq1_s.wgsl"},
    {IQ1_M,   true,  "IQ1_M",   256, 56,  29, "", dequantize_iq1_m,   nullptr, "codec/iq1_m.wgsl"},
    {IQ2_XXS, true,  "IQ2_XXS", 256, 66,  16, "", dequantize_iq2_xxs, nullptr, "codec/iq2_xxs.wgsl"},
    {IQ2_XS,  true,  "IQ2_XS",  256, 74,  17, "", dequantize_iq2_xs,  nullptr, "codec/iq2_xs.wgsl"},
    {IQ2_S,   true,  "IQ2_S",   256, 82,  22, "", dequantize_iq2_s,   nullptr, "codec/iq2_s.wgsl"},
    {IQ3_XXS, true,  "IQ3_XXS", 256, 98,  18, "", dequantize_iq3_xxs, nullptr, "codec/iq3_xxs.wgsl"},
    {IQ3_S,   true,  "IQ3_S",   256, 110, 21, "", dequantize_iq3_s,   nullptr, "codec/iq3_s.wgsl"},
    {IQ4_NL,  true,  "IQ4_NL",  32,  18,  20, "", dequantize_iq4_nl,  nullptr, "codec/iq4_nl.wgsl"},
    {IQ4_XS,  true,  "IQ4_XS",  256, 136, 23, "", dequantize_iq4_xs,  nullptr, "codec/iq4_xs.wgsl"},
    {TQ1_0,   true,  "TQ1_0",   256, 54,  34, "", dequantize_tq1_0,   nullptr, "codec/tq1_0.wgsl"},
    {TQ2_0,   true,  "TQ2_0",   256, 66,  35, "", dequantize_tq2_0,   nullptr, "codec/tq2_0.wgsl"},
    {MXFP4,   true,  "MXFP4",   32,  17,  39, "", dequantize_mxfp4,   nullptr, "codec/mxfp4.wgsl"},
    {NVFP4,   true,  "NVFP4",   64,  36,  40, "", dequantize_nvfp4,   nullptr, "codec/nvfp4.wgsl"},
    {I4_32,   true,  "I4_32",   32,  20,  kNoGguf, "", dequantize_i4_32,  nullptr, "codec/i4_32.wgsl"},
    {I4_64,   true,  "I4_64",   64,  36,  kNoGguf, "", dequantize_i4_64,  nullptr, "codec/i4_64.wgsl"},
    {I4_128,  true,  "I4_128",  128, 68,  kNoGguf, "", dequantize_i4_128, nullptr, "codec/i4_128.wgsl"},
    {I8_32,   true,  "I8_32",   32,  36,  kNoGguf, "", dequantize_i8_32,  nullptr, "codec/i8_32.wgsl"},
    {I8_128,  true,  "I8_128",  128, 132, kNoGguf, "", dequantize_i8_128, nullptr, "codec/i8_128.wgsl"},
    {F8_32,   true,  "F8_32",   32,  36,  kNoGguf, "", dequantize_f8_32,  nullptr, "codec/f8_32.wgsl"},
    {F8_128,  true,  "F8_128",  128, 132, kNoGguf, "", dequantize_f8_128, nullptr, "codec/f8_128.wgsl"},
    {F8_E4M3, false, "F8_E4M3", 1,   1,   kNoGguf, "F8_E4M3", nullptr, nullptr, ""},
};
// clang-format on

constexpr bool rows_follow_enum() {
  for (size_t i = 0; i < std::size(kDTypes); ++i) {
    if (static_cast<size_t>(kDTypes[i].dtype) != i) return false;
  }
  return std::size(kDTypes) == static_cast<size_t>(DType::F8_E4M3) + 1;
}
static_assert(rows_follow_enum());

// GGUF's type names by id, those of retired types too.
constexpr std::string_view kGgufTypeNames[] = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",    "Q1_0",
};

constexpr bool rows_agree_with_gguf_names() {
  for (const DTypeInfo& info : kDTypes) {
    if (info.gguf_id && kGgufTypeNames[*info.gguf_id] != info.name) return false;
  }
  return true;
}
static_assert(rows_agree_with_gguf_names());

constexpr std::string_view kOtherSafetensorsNames[] = {
    "F8_E5M2", "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4", "C64",
};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) {
  ensure(static_cast<size_t>(dtype) < std::size(kDTypes), "dtype has a row");
  return kDTypes[static_cast<size_t>(dtype)];
}

std::span<const DTypeInfo> all_dtypes() { return kDTypes; }

DType dtype_from_gguf(uint32_t id) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.gguf_id == id) return info.dtype;
  }
  if (id < std::size(kGgufTypeNames)) {
    fail("type {} is not supported yet", kGgufTypeNames[id]);
  }
  fail("unknown type id {}", id);
}

DType dtype_from_safetensors(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (!name.empty() && info.safetensors_name == name) return info.dtype;
  }
  for (const std::string_view other : kOtherSafetensorsNames) {
    if (other == name) fail("type {} is not supported yet", name);
  }
  fail("unknown type {}", in_quotes(name));
}

uint64_t row_bytes(DType dtype, uint64_t cols) {
  const DTypeInfo& info = dtype_info(dtype);
  if (cols % info.block_elements != 0) {
    fail("a row of {} values is not a whole number of {} blocks of {}", cols, info.name,
         info.block_elements);
  }
  return checked_mul(cols / info.block_elements, info.block_bytes, "bytes of a row");
}

uint64_t element_count(std::span<const uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t dim : shape) count = checked_mul(count, dim, "number of elements");
  return count;
}

uint64_t tensor_bytes(DType dtype, std::span<const uint64_t> shape) {
  if (shape.empty()) return row_bytes(dtype, 1);
  const uint64_t rows = element_count(shape.first(shape.size() - 1));
  return checked_mul(rows, row_bytes(dtype, shape.back()), "bytes of a tensor");
}

}  // namespace wisp::formats
