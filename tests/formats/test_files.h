// Files for tests of src/formats.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "temporary_folder.h"

namespace wisp::formats {

inline std::filesystem::path data_folder() {
  return std::filesystem::path(WISP_SOURCE_DIR) / "tests" / "data";
}

inline std::filesystem::path temporary_path(const std::string& name) {
  return temporary_folder() / name;
}

// The message of the Error that `body` throws; fails the test when it throws none or many lines.
inline std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

template <typename T>
std::vector<T> values_of(std::span<const std::byte> data) {
  std::vector<T> values(data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), data.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace wisp::formats
