#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

namespace fs = std::filesystem;

// A file in memory.
std::vector<std::byte> file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  for (size_t i = 0; i < data_bytes; ++i) file[8 + header.size() + i] = static_cast<std::byte>(i);
  return file;
}

TEST(Safetensors, ReadsEntriesInOrderOfTheirData) {
  const auto file = file_of(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[2,1],"data_offsets":[4,6]},)"
      R"("b":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )",
      6);
  const auto tensors = parse_safetensors(file);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "b");
  EXPECT_TRUE(tensors[0].shape.empty());
  EXPECT_EQ(tensors[1].name, "a");
  EXPECT_EQ(tensors[1].shape, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(values_of<uint8_t>(tensors[1].data), (std::vector<uint8_t>{4, 5}));
}

TEST(Safetensors, ReadsUnalignedAndEmptyTensorsAndHoles) {
  const auto file = file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                            R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[3,3]},)"
                            R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[7,9]}})",
                            9);
  const auto tensors = parse_safetensors(file);
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensor_to_f32(tensors[0]).size(), 1u);
  EXPECT_TRUE(tensor_to_f32(tensors[1]).empty());
  EXPECT_EQ(values_of<uint8_t>(tensors[2].data), (std::vector<uint8_t>{7, 8}));
}

TEST(Safetensors, ReadsEveryTypeOfThePythonPackage) {
  const MappedTensors contents =
      open_safetensors(data_folder() / "safetensors" / "python.safetensors");
  EXPECT_EQ(contents.tensors.size(), 14u);
  for (const TensorView& tensor : contents.tensors) {
    if (tensor.name == "scalar") {
      EXPECT_EQ(tensor_to_f32(tensor), std::vector<float>{1.5f});
    } else if (tensor.name == "empty") {
      EXPECT_EQ(tensor.shape, (std::vector<uint64_t>{0, 4}));
      EXPECT_TRUE(tensor.data.empty());
    } else {
      EXPECT_EQ(tensor.name, dtype_name(tensor.dtype));
      EXPECT_EQ(tensor.shape, (std::vector<uint64_t>{2, 3}));
    }
  }
}

TEST(Safetensors, AnEmptyObjectHoldsNothing) {
  EXPECT_TRUE(parse_safetensors(file_of("{}", 0)).empty());
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const auto file = file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  ASSERT_EQ(parse_safetensors(file).size(), 1u);
  for (size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_THROW(parse_safetensors(cut), Error) << size;
  }
}

TEST(Safetensors, WrittenTensorsComeBackAligned) {
  const std::vector<float> floats = {1.5f, -2.0f, 0.0f, 1e-40f, 5.0f, 6.0f};
  const std::vector<int32_t> ints = {-1, 2};
  const std::vector<int64_t> wide = {int64_t{1} << 40};
  const std::vector<uint8_t> bytes = {1, 2, 3};
  const std::vector<TensorView> tensors = {
      {"bytes", DType::U8, {3}, std::as_bytes(std::span(bytes))},
      {"logits", DType::F32, {2, 3}, std::as_bytes(std::span(floats))},
      {"tökens\n", DType::I32, {2}, std::as_bytes(std::span(ints))},
      {"wide", DType::I64, {1}, std::as_bytes(std::span(wide))},
      {"none", DType::F32, {0}, {}},
  };
  const fs::path path = temporary_path("written.safetensors");
  write_safetensors(path, tensors);
  const MappedTensors back = open_safetensors(path);
  ASSERT_EQ(back.tensors.size(), tensors.size());
  for (const TensorView& written : tensors) {
    const auto found =
        std::find_if(back.tensors.begin(), back.tensors.end(),
                     [&](const auto& tensor) { return tensor.name == written.name; });
    ASSERT_NE(found, back.tensors.end()) << written.name;
    EXPECT_EQ(found->dtype, written.dtype);
    EXPECT_EQ(found->shape, written.shape);
    EXPECT_TRUE(std::equal(found->data.begin(), found->data.end(), written.data.begin(),
                           written.data.end()));
    EXPECT_EQ(
        (found->data.data() - back.files[0].bytes().data()) % dtype_info(found->dtype).block_bytes,
        0);
  }
}

TEST(Safetensors, RefusesToWriteWhatItHasNot) {
  const fs::path path = temporary_path("refused.safetensors");
  const auto message = [&](const std::vector<TensorView>& tensors) {
    return error_of([&] { write_safetensors(path, tensors); });
  };
  const std::string prefix = path.string() + ": tensor ";
  EXPECT_EQ(message({{"t", DType::Q4_0, {32}, {}}}), prefix + "'t': safetensors has no type Q4_0");
  EXPECT_EQ(message({{"\xff", DType::F32, {0}, {}}}), prefix + "'\\xff': the name is not allowed");
  EXPECT_EQ(message({{"__metadata__", DType::F32, {0}, {}}}),
            prefix + "'__metadata__': the name is not allowed");
  EXPECT_EQ(message({{"t", DType::F32, {0}, {}}, {"t", DType::F32, {0}, {}}}),
            prefix + "'t': the name is used twice");
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace wisp::formats
