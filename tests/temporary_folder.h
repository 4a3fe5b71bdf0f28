// A folder that a test program may write, its own even when several users run the tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace wisp {

// Made at the first call, removed with all that is in it when the program ends.
inline const std::filesystem::path& temporary_folder() {
  struct Folder {
    Folder() : path(std::filesystem::path(testing::TempDir()) / fmt::format("wisp.{}", getpid())) {
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::filesystem::path path;
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace wisp
