#include "formats/metadata.h"

#include <gtest/gtest.h>

#include "test_files.h"

namespace wisp::formats {
namespace {

Metadata sample() {
  Metadata metadata;
  metadata.set("bool", true);
  metadata.set("int", int64_t{-3});
  metadata.set("big", uint64_t{1} << 63);
  metadata.set("float", 0.5);
  metadata.set("string", std::string("text"));
  metadata.set("ints", std::vector<int64_t>{1, 2});
  metadata.set("floats", std::vector<double>{0.5});
  metadata.set("strings", std::vector<std::string>{"a", "b"});
  metadata.set("bools", std::vector<bool>{true, false});
  return metadata;
}

TEST(Metadata, TypedAccess) {
  const Metadata metadata = sample();
  EXPECT_TRUE(metadata.contains("int"));
  EXPECT_EQ(metadata.get_bool("bool"), true);
  EXPECT_EQ(metadata.get_int("int"), -3);
  EXPECT_EQ(metadata.get_float("int"), -3.0);
  EXPECT_EQ(metadata.get_float("big"), 0x1p63);
  EXPECT_EQ(metadata.get_float("float"), 0.5);
  EXPECT_EQ(*metadata.find_string("string"), "text");
  EXPECT_EQ(*metadata.find_ints("ints"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*metadata.find_floats("floats"), std::vector<double>{0.5});
  EXPECT_EQ(metadata.find_strings("strings")->back(), "b");
  EXPECT_EQ(*metadata.find_bools("bools"), (std::vector<bool>{true, false}));
}

TEST(Metadata, MissingKeys) {
  const Metadata metadata;
  EXPECT_FALSE(metadata.contains("x"));
  EXPECT_EQ(metadata.get_bool("x"), std::nullopt);
  EXPECT_EQ(metadata.get_int("x"), std::nullopt);
  EXPECT_EQ(metadata.get_float("x"), std::nullopt);
  EXPECT_EQ(metadata.find_string("x"), nullptr);
  EXPECT_EQ(metadata.find_strings("x"), nullptr);
  EXPECT_EQ(metadata.find_ints("x"), nullptr);
  EXPECT_EQ(metadata.find_floats("x"), nullptr);
  EXPECT_EQ(metadata.find_bools("x"), nullptr);
}

TEST(Metadata, WrongTypesNameTheKey) {
  const Metadata metadata = sample();
  EXPECT_EQ(error_of([&] { metadata.get_int("float"); }),
            "metadata 'float': expected an integer below 2^63, found a float");
  EXPECT_EQ(error_of([&] { metadata.get_int("big"); }),
            "metadata 'big': expected an integer below 2^63, found an integer above 2^63");
  EXPECT_EQ(error_of([&] { metadata.get_bool("int"); }),
            "metadata 'int': expected a bool, found an integer");
  EXPECT_EQ(error_of([&] { metadata.get_float("string"); }),
            "metadata 'string': expected a number, found a string");
  EXPECT_EQ(error_of([&] { metadata.find_strings("ints"); }),
            "metadata 'ints': expected an array of strings, found an array of integers");
}

TEST(Metadata, SetReplaces) {
  Metadata metadata = sample();
  metadata.set("int", std::string("now text"));
  EXPECT_EQ(*metadata.find_string("int"), "now text");
}

}  // namespace
}  // namespace wisp::formats
