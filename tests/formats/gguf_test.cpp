#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/gguf_layout.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

namespace fs = std::filesystem;

const TensorView& tensor_named(const MappedTensors& contents, const std::string& name) {
  for (const TensorView& tensor : contents.tensors) {
    if (tensor.name == name) return tensor;
  }
  fail("no tensor {}", name);
}

std::vector<std::byte> bytes_of(const fs::path& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

TEST(Gguf, ReadsEveryMetadataTypeOfThePythonPackage) {
  const MappedTensors contents = open_gguf(data_folder() / "gguf" / "python.gguf");
  const Metadata& metadata = contents.metadata;
  EXPECT_EQ(*metadata.find_string("general.architecture"), "llama");
  EXPECT_EQ(metadata.get_int("test.u8"), 255);
  EXPECT_EQ(metadata.get_int("test.i8"), -128);
  EXPECT_EQ(metadata.get_int("test.u16"), 65535);
  EXPECT_EQ(metadata.get_int("test.i16"), -32768);
  EXPECT_EQ(metadata.get_int("test.u32"), 4294967295);
  EXPECT_EQ(metadata.get_int("test.i32"), -2147483648);
  EXPECT_EQ(std::get<uint64_t>(metadata.values().at("test.u64")), ~uint64_t{0});
  EXPECT_EQ(metadata.get_int("test.i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(metadata.get_float("test.f32"), static_cast<double>(0.1f));
  EXPECT_EQ(metadata.get_float("test.f64"), 0.1);
  EXPECT_EQ(metadata.get_bool("test.yes"), true);
  EXPECT_EQ(metadata.get_bool("test.no"), false);
  EXPECT_EQ(*metadata.find_string("test.string"), "naïve 日本 🙂");
  EXPECT_EQ(*metadata.find_ints("test.ints"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(*metadata.find_floats("test.floats"), (std::vector<double>{0.5, -1.25}));
  EXPECT_EQ(metadata.find_strings("test.strings")->at(1), "é");
  EXPECT_EQ(std::get<std::vector<bool>>(metadata.values().at("test.bools")),
            (std::vector<bool>{true, false, true}));
}

TEST(Gguf, ReadsTensorsOfThePythonPackage) {
  const MappedTensors contents = open_gguf(data_folder() / "gguf" / "python.gguf");
  ASSERT_EQ(contents.tensors.size(), 7u);
  EXPECT_EQ(tensor_named(contents, "plain").shape, (std::vector<uint64_t>{4, 3}));
  EXPECT_EQ(tensor_named(contents, "half").shape, (std::vector<uint64_t>{2, 3, 2}));
  EXPECT_EQ(values_of<int32_t>(tensor_named(contents, "ints").data),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
  const auto plain = tensor_to_f32(tensor_named(contents, "plain"));
  const auto half = tensor_to_f32(tensor_named(contents, "half"));
  EXPECT_NEAR(half[0], plain[0], 1e-3f);
  EXPECT_EQ(tensor_to_f32(tensor_named(contents, "vector"))[2], plain[2]);
  for (const DType dtype : {DType::Q8_0, DType::Q4_0, DType::Q4_1}) {
    const TensorView& tensor = tensor_named(contents, std::string(dtype_name(dtype)));
    EXPECT_EQ(tensor.dtype, dtype);
    EXPECT_EQ(tensor.shape, (std::vector<uint64_t>{4, 64}));
    const auto values = tensor_to_f32(tensor);
    const float bound = dtype == DType::Q8_0 ? 0.02f : 0.4f;
    for (size_t row = 0; row < 4; ++row) {
      EXPECT_NEAR(values[row * 64], plain[row * 3], bound) << dtype_name(dtype);
    }
  }
}

TEST(Gguf, ReadsVersionTwo) {
  std::vector<std::byte> bytes = bytes_of(data_folder() / "gguf" / "python.gguf");
  bytes[4] = std::byte{2};
  const Gguf file = parse_gguf(bytes);
  EXPECT_EQ(file.version, 2u);
  EXPECT_EQ(file.tensors.size(), 7u);
}

TEST(Gguf, EveryTruncationIsAnError) {
  const std::vector<std::byte> bytes = bytes_of(data_folder() / "gguf" / "python.gguf");
  const Gguf whole = parse_gguf(bytes);
  size_t end = 0;  // of the last tensor
  for (const TensorView& tensor : whole.tensors) {
    const auto tensor_end =
        static_cast<size_t>(tensor.data.data() + tensor.data.size() - bytes.data());
    end = std::max(end, tensor_end);
  }
  for (size_t size = 0; size < end; ++size) {
    // An allocation of just this size, so that the address sanitizer sees a read past the end.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_THROW(parse_gguf(cut), Error) << size;
  }
}

TEST(Gguf, ReadsAllPartsFromTheFirst) {
  const MappedTensors contents = open_gguf(data_folder() / "gguf" / "split-00001-of-00003.gguf");
  EXPECT_EQ(contents.files.size(), 3u);
  EXPECT_EQ(contents.metadata.get_int("test.u32"), 5);
  ASSERT_EQ(contents.tensors.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    const TensorView& tensor = tensor_named(contents, "tensor." + std::to_string(i));
    EXPECT_EQ(tensor_to_f32(tensor), std::vector<float>(6, static_cast<float>(i)));
  }
}

class Written : public testing::Test {
 protected:
  // The tensor's values count up from `first`.
  void add(const std::string& name, std::vector<uint64_t> shape, float first) {
    std::vector<float> values(element_count(shape));
    std::iota(values.begin(), values.end(), first);
    tensors_.push_back({name, DType::F32, std::move(shape),
                        [values] { return std::as_bytes(std::span(values)); }});
  }

  MappedTensors write_and_open() {
    const fs::path path = temporary_path("written.gguf");
    write_gguf(path, metadata_, tensors_);
    return open_gguf(path);
  }

  Metadata metadata_;
  std::vector<GgufTensor> tensors_;
};

TEST_F(Written, ComesBack) {
  metadata_.set("bool", false);
  metadata_.set("u32", int64_t{7});
  metadata_.set("i32", int64_t{-7});
  metadata_.set("i64", std::numeric_limits<int64_t>::max());
  metadata_.set("u64", ~uint64_t{0});
  metadata_.set("f32", 0.25);
  metadata_.set("f64", 0.1);
  metadata_.set("nan", std::numeric_limits<double>::quiet_NaN());
  metadata_.set("inf", -std::numeric_limits<double>::infinity());
  metadata_.set("string", std::string("a\0b", 3));
  metadata_.set("ints", std::vector<int64_t>{-1, 1});
  metadata_.set("wide ints", std::vector<int64_t>{int64_t{1} << 40});
  metadata_.set("floats", std::vector<double>{0.5, 2});
  metadata_.set("wide floats", std::vector<double>{0.1, 1e300});
  metadata_.set("strings", std::vector<std::string>{"", "x"});
  metadata_.set("bools", std::vector<bool>{true, false});
  metadata_.set("none", std::vector<std::string>{});
  add("vector", {3}, 0);
  add("matrix", {2, 3}, 10);
  add("four", {2, 1, 3, 2}, 20);
  const MappedTensors back = write_and_open();
  ASSERT_EQ(back.metadata.values().size(), metadata_.values().size());
  for (const auto& [key, value] : metadata_.values()) {
    if (key == "nan") {
      EXPECT_TRUE(std::isnan(*back.metadata.get_float("nan")));
    } else {
      EXPECT_TRUE(back.metadata.values().at(key) == value) << key;
    }
  }
  ASSERT_EQ(back.tensors.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto written = tensors_[i].data();
    EXPECT_EQ(back.tensors[i].name, tensors_[i].name);
    EXPECT_EQ(back.tensors[i].shape, tensors_[i].shape);
    EXPECT_TRUE(std::equal(written.begin(), written.end(), back.tensors[i].data.begin()));
  }
}

TEST_F(Written, HonoursAlignment) {
  metadata_.set(kGgufAlignmentKey, int64_t{4096});
  add("a", {1}, 1);
  add("b", {1}, 2);
  const MappedTensors back = write_and_open();
  EXPECT_EQ(back.tensors[1].data.data() - back.tensors[0].data.data(), 4096);
  EXPECT_EQ((back.tensors[0].data.data() - back.files[0].bytes().data()) % 4096, 0);
}

TEST_F(Written, EveryStorageType) {
  std::vector<std::byte> blocks(210 * 2, std::byte{1});
  for (const DTypeInfo& info : all_dtypes()) {
    if (!info.gguf_id) continue;
    tensors_.push_back({std::string(info.name), info.dtype, {2, info.block_elements}, [&] {
                          return std::span<const std::byte>(blocks).first(2 * info.block_bytes);
                        }});
  }
  const MappedTensors back = write_and_open();
  ASSERT_EQ(back.tensors.size(), tensors_.size());
  for (const TensorView& tensor : back.tensors) EXPECT_EQ(dtype_name(tensor.dtype), tensor.name);
}

TEST_F(Written, LargeVocabulary) {
  std::vector<std::string> tokens(150'000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = "token" + std::to_string(i);
  metadata_.set("tokenizer.ggml.tokens", tokens);
  metadata_.set("tokenizer.ggml.token_type", std::vector<int64_t>(tokens.size(), 1));
  const MappedTensors back = write_and_open();
  EXPECT_EQ(*back.metadata.find_strings("tokenizer.ggml.tokens"), tokens);
}

TEST_F(Written, RefusesWhatGgufHasNot) {
  const fs::path path = temporary_path("refused.gguf");
  const auto message = [&](const GgufTensor& tensor) {
    return error_of([&] { write_gguf(path, {}, {&tensor, 1}); });
  };
  const auto no_data = [] { return std::span<const std::byte>(); };
  EXPECT_EQ(message({"t", DType::U8, {1}, no_data}),
            path.string() + ": tensor 't': GGUF has no type U8");
  EXPECT_NE(message({"t", DType::F32, {}, no_data}).find("found []"), std::string::npos);
  EXPECT_NE(message({"t", DType::F32, {1, 0}, no_data}).find("found [1, 0]"), std::string::npos);
  EXPECT_NE(message({"t", DType::Q4_0, {31}, no_data}).find("whole number"), std::string::npos);
  add("t", {1}, 0);
  add("t", {1}, 0);
  EXPECT_NE(error_of([&] { write_gguf(path, {}, tensors_); }).find("used twice"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(Written, AFailureLeavesNoFile) {
  const fs::path path = temporary_path("half.gguf");
  tensors_.push_back(
      {"t", DType::F32, {1}, []() -> std::span<const std::byte> { fail("no data today"); }});
  EXPECT_EQ(error_of([&] { write_gguf(path, {}, tensors_); }), "no data today");
  EXPECT_FALSE(fs::exists(path));
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    EXPECT_EQ(entry.path().string().find("half.gguf"), std::string::npos);
  }
  EXPECT_NE(error_of([] { write_gguf("/no/such/folder/x.gguf", {}, {}); }).find("cannot write"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp::formats
