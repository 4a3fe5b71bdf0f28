#include "formats/dtype.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "formats/quoted.h"
#include "formats/tensor.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(DType, RowsAreConsistent) {
  std::set<std::string_view> names;
  for (const DTypeInfo& info : all_dtypes()) {
    EXPECT_EQ(&dtype_info(info.dtype), &info);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(info.is_weight, info.dequantize != nullptr) << info.name;
    EXPECT_TRUE(info.quantize == nullptr || info.dequantize != nullptr) << info.name;
    EXPECT_EQ(info.is_weight, !info.wgsl_codec.empty()) << info.name;
    const bool grouped = info.dtype >= DType::I4_32 && info.dtype <= DType::F8_128;
    EXPECT_NE(info.gguf_id || !info.safetensors_name.empty(), grouped) << info.name;
    if (info.gguf_id) {
      EXPECT_EQ(dtype_from_gguf(*info.gguf_id), info.dtype);
    }
    if (!info.safetensors_name.empty()) {
      EXPECT_EQ(dtype_from_safetensors(info.safetensors_name), info.dtype);
    }
  }
}

TEST(DType, UnsupportedTypesAreNamed) {
  EXPECT_EQ(error_of([] { dtype_from_gguf(9); }), "type Q8_1 is not supported yet");
  EXPECT_EQ(error_of([] { dtype_from_gguf(15); }), "type Q8_K is not supported yet");
  EXPECT_EQ(error_of([] { dtype_from_gguf(41); }), "type Q1_0 is not supported yet");
  EXPECT_EQ(error_of([] { dtype_from_gguf(4000); }), "unknown type id 4000");
  EXPECT_EQ(error_of([] { dtype_from_safetensors("F8_E5M2"); }),
            "type F8_E5M2 is not supported yet");
  EXPECT_EQ(error_of([] { dtype_from_safetensors("x\n"); }), "unknown type 'x\\x0a'");
}

TEST(DType, Bytes) {
  EXPECT_EQ(row_bytes(DType::F16, 3), 6u);
  EXPECT_EQ(row_bytes(DType::Q4_0, 64), 36u);
  EXPECT_EQ(row_bytes(DType::Q6_K, 512), 420u);
  EXPECT_EQ(row_bytes(DType::Q6_K, 0), 0u);
  EXPECT_EQ(tensor_bytes(DType::F32, {}), 4u);
  EXPECT_EQ(tensor_bytes(DType::Q8_0, std::vector<uint64_t>{3, 2, 32}), 3u * 2 * 34);
  EXPECT_EQ(tensor_bytes(DType::F32, std::vector<uint64_t>{0, 5}), 0u);
  EXPECT_EQ(error_of([] { row_bytes(DType::Q4_K, 128); }),
            "a row of 128 values is not a whole number of Q4_K blocks of 256");
  EXPECT_EQ(error_of([] { row_bytes(DType::F64, kMax / 4); }),
            "bytes of a row: 4611686018427387903 * 8 overflows");
  error_of([] { tensor_bytes(DType::Q4_0, std::vector<uint64_t>{2, 16}); });
  error_of([] { element_count(std::vector<uint64_t>{kMax, 2}); });
  error_of([] { tensor_bytes(DType::F32, std::vector<uint64_t>{kMax / 4, 4}); });
}

TEST(Tensor, ToF32) {
  const std::vector<uint16_t> halves = {0x3c00, 0xc000};
  TensorView view{"t", DType::F16, {2}, std::as_bytes(std::span(halves))};
  EXPECT_EQ(tensor_to_f32(view), (std::vector<float>{1.0f, -2.0f}));
  view.dtype = DType::I16;
  EXPECT_EQ(error_of([&] { tensor_to_f32(view); }),
            "tensor 't': expected a floating-point type, found I16");
  EXPECT_EQ(shape_text(std::vector<uint64_t>{2, 3}), "[2, 3]");
  EXPECT_EQ(shape_text({}), "[]");
}

TEST(Quotes, MakeAnyBytesOneLine) {
  EXPECT_EQ(in_quotes("blk.0.é🙂"), "'blk.0.é🙂'");
  EXPECT_EQ(in_quotes("a\nb\x7f\xff"), "'a\\x0ab\\x7f\\xff'");
  EXPECT_EQ(in_quotes(std::string(500, 'x')), "'" + std::string(100, 'x') + "...'");
}

TEST(Quotes, Utf8) {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xed\x9f\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xc0\xaf", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "a\xe2\x28\xa1"}) {
    EXPECT_FALSE(is_utf8(bad)) << in_quotes(bad);
  }
}

}  // namespace
}  // namespace wisp::formats
