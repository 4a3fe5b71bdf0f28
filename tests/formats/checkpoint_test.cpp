#include "formats/checkpoint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "formats/safetensors.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

namespace fs = std::filesystem;

void write_text_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A new folder with an empty config.json.
fs::path model_folder(const std::string& name) {
  fs::path folder = temporary_path(name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  write_text_file(folder / "config.json", "{}");
  return folder;
}

// One F32 tensor of two values.
void write_one(const fs::path& path, const std::string& name, float first) {
  const std::vector<float> values = {first, first + 1};
  const TensorView tensor{name, DType::F32, {1, 2}, std::as_bytes(std::span(values))};
  write_safetensors(path, {&tensor, 1});
}

TEST(Checkpoint, OpensAGgufFile) {
  const fs::path path = data_folder() / "gguf" / "python.gguf";
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.kind(), CheckpointKind::gguf);
  EXPECT_EQ(checkpoint.path(), path);
  EXPECT_EQ(checkpoint.folder(), path.parent_path());
  EXPECT_EQ(*checkpoint.metadata().find_string("general.architecture"), "llama");
  EXPECT_EQ(checkpoint.tensors().size(), 7u);
  EXPECT_EQ(checkpoint.total_bytes(), 48u + 20 + 24 + 4 * 68 + 4 * 36 + 4 * 40 + 28);
  ASSERT_NE(checkpoint.find("plain"), nullptr);
  EXPECT_EQ(checkpoint.find("plain")->shape, (std::vector<uint64_t>{4, 3}));
  EXPECT_EQ(checkpoint.find("plai"), nullptr);
  EXPECT_EQ(error_of([&] { checkpoint.require("a\nb"); }), path.string() + ": no tensor 'a\\x0ab'");
}

TEST(Checkpoint, OpensAFolderWithOneFile) {
  const fs::path folder = model_folder("single");
  write_one(folder / "model.safetensors", "t", 1);
  write_one(folder / "consolidated.safetensors", "t", 1);  // the same weights in another layout
  const Checkpoint checkpoint = Checkpoint::open(folder);
  EXPECT_EQ(checkpoint.kind(), CheckpointKind::huggingface);
  EXPECT_EQ(checkpoint.folder(), folder);
  EXPECT_TRUE(checkpoint.metadata().values().empty());
  EXPECT_EQ(checkpoint.total_bytes(), 8u);
  EXPECT_EQ(tensor_to_f32(checkpoint.require("t")), (std::vector<float>{1, 2}));
}

TEST(Checkpoint, OpensShardsThroughTheIndex) {
  const fs::path folder = model_folder("sharded");
  write_one(folder / "x.safetensors", "a", 1);
  write_one(folder / "y.safetensors", "b", 3);
  write_one(folder / "unused.safetensors", "a", 9);
  write_text_file(folder / "model.safetensors.index.json",
                  R"({"metadata":{"total_size":16,"nested":{"deeper":[[1]]}},)"
                  R"("weight_map":{"a":"x.safetensors","b":"y.safetensors"}})");
  const Checkpoint checkpoint = Checkpoint::open(folder);
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(tensor_to_f32(checkpoint.require("a")), (std::vector<float>{1, 2}));
  EXPECT_EQ(tensor_to_f32(checkpoint.require("b")), (std::vector<float>{3, 4}));
}

TEST(Checkpoint, OpensAllFilesWithoutAnIndex) {
  const fs::path folder = model_folder("loose");
  write_one(folder / "x.safetensors", "a", 1);
  write_one(folder / "y.safetensors", "b", 3);
  EXPECT_EQ(Checkpoint::open(folder).tensors().size(), 2u);
}

TEST(Checkpoint, ViewsOutliveAMove) {
  Checkpoint first = Checkpoint::open(data_folder() / "gguf" / "python.gguf");
  const TensorView* view = first.find("ints");
  const Checkpoint second = std::move(first);
  EXPECT_EQ(second.find("ints"), view);
  EXPECT_EQ(values_of<int32_t>(view->data).back(), 6);
}

TEST(Checkpoint, WrongPaths) {
  EXPECT_EQ(error_of([] { Checkpoint::open("no/such/model.gguf"); }),
            "no/such/model.gguf: no such file or folder");
  EXPECT_EQ(error_of([] { Checkpoint::open(""); }), ": no such file or folder");
  EXPECT_NE(error_of([] { Checkpoint::open("/dev/null"); }).find("not a regular file"),
            std::string::npos);
  const fs::path folder = model_folder("config_only");
  EXPECT_NE(error_of([&] { Checkpoint::open(folder / "config.json"); }).find("give the folder"),
            std::string::npos);
}

TEST(Checkpoint, AGgufFileNeedsNoExtension) {
  const fs::path path = temporary_path("blob");
  fs::copy_file(data_folder() / "gguf" / "python.gguf", path, fs::copy_options::overwrite_existing);
  EXPECT_EQ(Checkpoint::open(path).kind(), CheckpointKind::gguf);
}

}  // namespace
}  // namespace wisp::formats
