// What GPU tests share: a device of this machine's test driver, kernels of tests/data/kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "gpu/buffer.h"
#include "gpu/device.h"
#include "gpu/kernel.h"
#include "gpu/recording.h"

namespace wisp::gpu {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    set_kernel_directory(std::filesystem::path(WISP_SOURCE_DIR) / "tests/data/kernels");
  }
  void TearDown() override { set_kernel_directory({}); }
};

inline std::vector<uint32_t> read_words(Device& device, const Buffer& buffer) {
  std::vector<uint32_t> words(buffer.size() / 4);
  const std::vector<std::byte> bytes = device.read(buffer, 0, words.size() * 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

inline Buffer buffer_of(Device& device, const std::vector<uint32_t>& words,
                        std::string_view label = "words") {
  Buffer buffer(device, words.size() * 4, BufferUse::storage, label);
  device.write(buffer, 0, std::as_bytes(std::span(words)));
  return buffer;
}

// The message of the Error that `body` throws; fails the test when it throws none.
template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an Error";
  return {};
}

inline testing::AssertionResult has(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in '" << text << "'";
}

}  // namespace wisp::gpu
