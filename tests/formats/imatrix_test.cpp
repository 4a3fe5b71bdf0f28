#include "formats/imatrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/gguf.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

namespace fs = std::filesystem;

// The older form, as llama-imatrix wrote it.
class Binary {
 public:
  Binary& number(int32_t value) { return add(&value, sizeof(value)); }
  Binary& text(const std::string& value) {
    number(static_cast<int32_t>(value.size()));
    return add(value.data(), value.size());
  }
  Binary& values(const std::vector<float>& values) {
    number(static_cast<int32_t>(values.size()));
    return add(values.data(), values.size() * sizeof(float));
  }
  fs::path write() const {
    fs::path path = temporary_path("imatrix.dat");
    write_file(path, bytes_);
    return path;
  }
  void cut(size_t bytes) { bytes_.resize(bytes_.size() - bytes); }

 private:
  Binary& add(const void* from, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
    return *this;
  }
  std::vector<std::byte> bytes_;
};

struct NamedValues {
  std::string name;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

fs::path write_gguf_form(const std::vector<NamedValues>& tensors) {
  std::vector<GgufTensor> list;
  list.reserve(tensors.size());
  for (const NamedValues& tensor : tensors) {
    list.push_back({tensor.name, DType::F32, tensor.shape,
                    [&tensor] { return std::as_bytes(std::span(tensor.values)); }});
  }
  fs::path path = temporary_path("imatrix.gguf");
  Metadata metadata;
  metadata.set("general.type", std::string("imatrix"));
  write_gguf(path, metadata, list);
  return path;
}

// Written by tools/make_quantize_fixture.py.
TEST(Imatrix, ReadsBothFormsAlike) {
  for (const char* name : {"imatrix.gguf", "imatrix.dat"}) {
    const Imatrix imatrix = read_imatrix(data_folder() / "imatrix" / name);
    ASSERT_EQ(imatrix.size(), 2U);
    EXPECT_EQ(imatrix.at("blk.0.attn_q.weight"), (Importance{0.5f, 1.0f, 0.0f}));
    EXPECT_EQ(imatrix.at("blk.0.ffn_up_exps.weight"),
              (Importance{4.0f, 2.0f, 1.0f, 1.0f, 1.0f, 3.0f}));
  }
}

TEST(Imatrix, ReadsTheGgufForm) {
  const Imatrix imatrix = read_imatrix(
      write_gguf_form({{"a.weight.in_sum2", {1, 3}, {2.0f, 4.0f, 0.0f}},
                       {"a.weight.counts", {1, 1}, {4.0f}},
                       {"experts.weight.in_sum2", {3, 2}, {8.0f, 4.0f, 7.0f, 7.0f, 1.0f, 3.0f}},
                       {"experts.weight.counts", {3, 1}, {2.0f, 0.0f, 1.0f}}}));
  ASSERT_EQ(imatrix.size(), 2U);
  EXPECT_EQ(imatrix.at("a.weight"), (Importance{0.5f, 1.0f, 0.0f}));
  // The second expert was never chosen.
  EXPECT_EQ(imatrix.at("experts.weight"), (Importance{4.0f, 2.0f, 1.0f, 1.0f, 1.0f, 3.0f}));
}

TEST(Imatrix, ReadsTheBinaryForm) {
  Binary binary;
  binary.number(2).text("a.weight").number(4).values({2.0f, 4.0f});
  binary.text("b.weight").number(0).values({3.0f});
  Binary with_end = binary;
  with_end.number(4).text("wiki.txt");
  for (const Binary& form : {binary, with_end}) {
    const Imatrix imatrix = read_imatrix(form.write());
    ASSERT_EQ(imatrix.size(), 2U);
    EXPECT_EQ(imatrix.at("a.weight"), (Importance{0.5f, 1.0f}));
    EXPECT_EQ(imatrix.at("b.weight"), Importance{3.0f});
  }
}

TEST(Imatrix, RefusesWhatItCannotUse) {
  const auto error = [](const fs::path& path) { return error_of([&] { read_imatrix(path); }); };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  Binary cut;
  cut.number(1).text("a.weight").number(1).values({1.0f, 2.0f}).cut(3);
  expect(error(cut.write()), "imatrix.dat: not an importance matrix of llama-imatrix: values at");
  expect(error(Binary().number(0).write()), "no entries");
  expect(error(Binary().number(-5).write()), "number of entries: -5");
  expect(error(Binary().number(1 << 30).number(1 << 30).write()), "expected 1073741824 bytes");
  expect(error(Binary().number(1).text("a").number(1).values({}).write()), "without values");
  expect(error(Binary().write()), "number of entries at byte 0");
  for (const float value : {-1.0f, std::numeric_limits<float>::quiet_NaN(), INFINITY}) {
    expect(error(Binary().number(1).text("a").number(1).values({value}).write()),
           "'a': expected finite squares");
  }
  Binary twice;
  twice.number(2).text("a").number(1).values({1.0f}).text("a").number(1).values({1.0f});
  expect(error(twice.write()), "'a' is there twice");
  expect(error(write_gguf_form({{"a.weight", {1}, {1.0f}}})), "without an importance matrix");
  expect(error(write_gguf_form({{"a.in_sum2", {1}, {1.0f}}})), "'a': no counts");
  expect(error(write_gguf_form(
             {{"a.in_sum2", {3}, {1.0f, 1.0f, 1.0f}}, {"a.counts", {2}, {1.0f, 1.0f}}})),
         "'a': 3 sums of 2 matrices");
  expect(error(temporary_path("nowhere")), "nowhere: cannot open");
}

}  // namespace
}  // namespace wisp::formats
