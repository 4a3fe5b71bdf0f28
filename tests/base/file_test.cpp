#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "base/error.h"
#include "temporary_folder.h"

namespace wisp {
namespace {

std::filesystem::path temp_path(const std::string& name) { return temporary_folder() / name; }

TEST(File, WriteThenMap) {
  const auto path = temp_path("wisp_file_test");
  const std::string text = "some bytes";
  write_file(path, std::as_bytes(std::span(text)));
  EXPECT_EQ(read_text(path), text);
  MappedFile first(path);
  const MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().size(), text.size());
  std::filesystem::remove(path);
}

TEST(File, EmptyFileIsAnEmptySpan) {
  const auto path = temp_path("wisp_empty_test");
  write_file(path, {});
  EXPECT_TRUE(MappedFile(path).bytes().empty());
  std::filesystem::remove(path);
}

TEST(File, ErrorsNameThePath) {
  EXPECT_THROW(MappedFile("/nonexistent/file"), Error);
  EXPECT_THROW(MappedFile("/tmp"), Error);
  const auto fifo = temp_path("wisp_fifo_test");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(MappedFile{fifo}, Error);  // and does not wait for a writer
  std::filesystem::remove(fifo);
  EXPECT_THROW(write_file("/nonexistent/file", {}), Error);
}

}  // namespace
}  // namespace wisp
