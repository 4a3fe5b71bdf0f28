// Storage types of tensors: one table row for each (docs/formats.md draws the block layouts). A new
// weight codec is one row, one dequantize function, and one WGSL file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace wisp::formats {

// Names as GGUF and safetensors spell them.
enum class DType : uint8_t {
  F32,
  F16,
  BF16,
  F64,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  BOOL,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ1_S,
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  IQ4_NL,
  IQ4_XS,
  TQ1_0,
  TQ2_0,
  MXFP4,
  NVFP4,
  // Made of what folders of Hugging Face hold (grouped.h); no file has them.
  I4_32,
  I4_64,
  I4_128,
  I8_32,
  I8_128,
  F8_32,
  F8_128,
  F8_E4M3,  // without scales: no weight by itself
};

// Decodes `elements` values (a multiple of block_elements) from `blocks`, which may lie at any
// address, into `out`. Pure; any thread.
using DequantizeFn = void (*)(const std::byte* blocks, float* out, size_t elements);
// The reverse, by plain round to nearest; `elements` is a multiple of block_elements.
using QuantizeFn = void (*)(const float* values, std::byte* blocks, size_t elements);

struct DTypeInfo {
  DType dtype;
  bool is_weight;  // backends multiply with it; then dequantize and wgsl_codec are set
  std::string_view name;
  uint32_t block_elements;            // values in a block; 1 for plain types
  uint32_t block_bytes;               // bytes of a block
  std::optional<uint32_t> gguf_id;    // type id in GGUF; nullopt: GGUF has no such type
  std::string_view safetensors_name;  // empty: safetensors has no such type
  DequantizeFn dequantize;            // nullptr: no float values
  QuantizeFn quantize;                // nullptr: no encoder
  std::string_view wgsl_codec;        // file below kernels/, such as "codec/q4_0.wgsl"; or empty
};

// The row of `dtype`, and all rows in the order of the enum.
const DTypeInfo& dtype_info(DType dtype);
std::span<const DTypeInfo> all_dtypes();
inline bool is_block_type(DType dtype) { return dtype_info(dtype).block_elements > 1; }
inline std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }

// The type of a GGUF id. Throws Error that gives the type's name when GGUF defines it and we do not
// read it ("type Q8_K is not supported yet"), else "unknown type id 77".
DType dtype_from_gguf(uint32_t id);
// The type of a safetensors name. Throws Error with the name when it is not one we read.
DType dtype_from_safetensors(std::string_view name);

// Bytes of a row of `cols` values. Throws Error when cols is not a multiple of the block or when
// the result overflows.
uint64_t row_bytes(DType dtype, uint64_t cols);
// Product of the dimensions (1 for a scalar, whose shape is empty). Throws Error on overflow.
uint64_t element_count(std::span<const uint64_t> shape);
// Bytes of a tensor whose rows run along the last dimension. Throws Error as row_bytes does.
uint64_t tensor_bytes(DType dtype, std::span<const uint64_t> shape);

}  // namespace wisp::formats
