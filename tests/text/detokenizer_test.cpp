#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/utf8.h"
#include "tiny_vocab.h"

namespace wisp::text {
namespace {

std::string replaced(std::string_view bytes) {
  std::string text;
  EXPECT_EQ(append_utf8(bytes, true, text), bytes.size());
  return text;
}

const std::string kBad = "\xEF\xBF\xBD";

TEST(Utf8, WrongBytesAreReplacedAsPythonDoes) {
  EXPECT_EQ(replaced("abc"), "abc");
  EXPECT_EQ(replaced("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(replaced("\xFF"
                     "a"),
            kBad + "a");
  EXPECT_EQ(replaced("\x80\x80"), kBad + kBad);
  EXPECT_EQ(replaced("\xE2\x82"), kBad);  // the start of a character: one
  EXPECT_EQ(replaced("\xE2\x82"
                     "a"),
            kBad + "a");
  EXPECT_EQ(replaced("\xC0\x80"), kBad + kBad);  // overlong
  EXPECT_EQ(replaced("\xE0\x80\x80"), kBad + kBad + kBad);
  EXPECT_EQ(replaced("\xED\xA0\x80"), kBad + kBad + kBad);             // a surrogate
  EXPECT_EQ(replaced("\xF4\x90\x80\x80"), kBad + kBad + kBad + kBad);  // above U+10FFFF
  EXPECT_EQ(replaced("\xF0\x9F\x98\xF0\x9F\x98\x80"), kBad + "\xF0\x9F\x98\x80");
}

TEST(Utf8, TheStartOfACharacterIsLeft) {
  std::string text;
  EXPECT_EQ(append_utf8("a\xF0\x9F\x98", false, text), 1u);
  EXPECT_EQ(text, "a");
}

class StreamTest : public testing::Test {
 protected:
  std::string run(const std::vector<std::string>& pieces, StreamOptions options) {
    StreamDecoder decoder(tokenizer_, std::move(options));
    std::string text;
    for (const std::string& piece : pieces) {
      const std::string released = decoder.push_bytes(piece);
      EXPECT_EQ(replaced(released), released);  // whole characters only
      text += released;
    }
    return text + decoder.finish();
  }

  const Tokenizer tokenizer_ = Tokenizer::from_gguf(tiny_bpe().metadata());
};

TEST_F(StreamTest, CharactersComeWhole) {
  StreamDecoder decoder(tokenizer_);
  EXPECT_EQ(decoder.push(262), "hello");
  EXPECT_EQ(decoder.push(272), "");  // F0 9F 98
  EXPECT_EQ(decoder.push(3 + 0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(decoder.push(272), "");
  EXPECT_EQ(decoder.push(267), kBad + " world");
  EXPECT_EQ(decoder.push(272), "");
  EXPECT_EQ(decoder.finish(), kBad);
}

TEST_F(StreamTest, SpecialTokensAreSkippedOrShown) {
  StreamDecoder skipping(tokenizer_);
  EXPECT_EQ(skipping.push(2), "");
  StreamDecoder showing(tokenizer_, {.skip_special = false});
  EXPECT_EQ(showing.push(2), "<|im_end|>");
  EXPECT_EQ(showing.push(99999), "");
}

TEST_F(StreamTest, StopTextsAreFoundAcrossTokens) {
  StreamDecoder decoder(tokenizer_, {.stop = {"lo wor"}});
  EXPECT_EQ(decoder.push(262), "hel");
  EXPECT_FALSE(decoder.stopped());
  EXPECT_EQ(decoder.push(267), "");
  EXPECT_EQ(decoder.stopped(), 0u);
  EXPECT_EQ(decoder.push(262), "");
  EXPECT_EQ(decoder.finish(), "");
}

TEST_F(StreamTest, WhatOnlyLookedLikeAStopTextComesOut) {
  StreamDecoder decoder(tokenizer_, {.stop = {"hello!", "<end>", ""}});
  EXPECT_EQ(decoder.push_bytes("hello"), "");
  EXPECT_EQ(decoder.push_bytes("?<en"), "hello?");
  EXPECT_EQ(decoder.push_bytes("<en"), "<en");
  EXPECT_EQ(decoder.finish(), "<en");
  EXPECT_FALSE(decoder.stopped());
}

TEST_F(StreamTest, OneSpaceIsStrippedFromTheStartOnly) {
  EXPECT_EQ(run({" ", " a b"}, {.strip_first_space = true}), " a b");
  EXPECT_EQ(run({"a", " b"}, {.strip_first_space = true}), "a b");
  EXPECT_EQ(run({"", " b"}, {.strip_first_space = true}), "b");
}

// Every way to cut the bytes into tokens gives the same text.
TEST_F(StreamTest, AnyCutGivesTheSameText) {
  std::mt19937 random(7);
  const std::vector<std::string> atoms = {
      "a",    "b",    "ab",   "aab", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
      "\xE2", "\x82", "\xFF", " ",   "\n",       "stop",         "st",
      "op"};
  const std::vector<std::vector<std::string>> stops = {
      {}, {"stop"}, {"aab", "ab\n"}, {"\xE2\x82\xAC"}, {"bab", "abab", "ba"}, {kBad + "a"}};
  for (int round = 0; round < 4000; ++round) {
    std::string whole;
    for (uint32_t i = random() % 12; i > 0; --i) whole += atoms[random() % atoms.size()];
    const StreamOptions options = {.stop = stops[random() % stops.size()],
                                   .strip_first_space = random() % 2 == 0};
    const std::string expected = run({whole}, options);
    if (options.stop.empty() && !options.strip_first_space) {
      EXPECT_EQ(expected, replaced(whole));
    }
    std::vector<std::string> pieces;
    for (size_t at = 0; at < whole.size();) {
      const size_t size = 1 + random() % 4;
      pieces.push_back(whole.substr(at, size));
      at += size;
    }
    EXPECT_EQ(run(pieces, options), expected) << testing::PrintToString(whole);
  }
}

}  // namespace
}  // namespace wisp::text
