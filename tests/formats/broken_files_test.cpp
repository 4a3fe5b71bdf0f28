// Every file of tests/data/broken is refused with the line that EXPECTED.txt promises.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "base/file.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "test_files.h"

namespace wisp::formats {
namespace {

namespace fs = std::filesystem;

fs::path broken_folder() { return data_folder() / "broken"; }

// file or folder -> part of its message
std::map<std::string, std::string> expectations() {
  std::map<std::string, std::string> result;
  std::istringstream lines(read_text(broken_folder() / "EXPECTED.txt"));
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    result[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return result;
}

void open_any(const fs::path& path) {
  if (path.extension() == ".safetensors") {
    open_safetensors(path);
  } else {
    Checkpoint::open(path);
  }
}

TEST(BrokenFiles, AreAllListed) {
  const auto expected = expectations();
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(broken_folder())) {
    const std::string name = entry.path().filename().string();
    if (name == "EXPECTED.txt") continue;
    EXPECT_TRUE(expected.contains(name)) << name;
    ++count;
  }
  EXPECT_EQ(count, expected.size());
  EXPECT_GT(count, 100u);
}

TEST(BrokenFiles, GiveOneClearLine) {
  for (const auto& [name, part] : expectations()) {
    SCOPED_TRACE(name);
    const fs::path path = broken_folder() / name;
    const std::string message = error_of([&] { open_any(path); });
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nexpected: " << part;
    EXPECT_EQ(message.find(broken_folder().string()), 0u) << message;
    EXPECT_LT(message.size(), 600u) << message;
  }
}

}  // namespace
}  // namespace wisp::formats
