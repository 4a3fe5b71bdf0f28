#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"
#include "tiny_vocab.h"

namespace wisp::text {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer load(const TinyVocab& vocab) { return Tokenizer::from_gguf(vocab.metadata()); }

std::string error_of(const TinyVocab& vocab) {
  try {
    load(vocab);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The id of a byte letter in tiny_bpe.
int32_t letter(char c) { return 3 + static_cast<unsigned char>(c); }

TEST(GgufBytePairs, MergesByRankInsidePieces) {
  const Tokenizer tokenizer = load(tiny_bpe());
  EXPECT_EQ(tokenizer.vocab_size(), 275u);
  EXPECT_EQ(tokenizer.encode("hello world", false, false), (Ids{262, 267}));
  EXPECT_EQ(tokenizer.encode("hello", true, false), (Ids{0, 262}));
  EXPECT_EQ(tokenizer.encode("", true, false), (Ids{0}));
  EXPECT_EQ(tokenizer.encode("", false, false), Ids{});
  // The rule "smollm" takes digits one by one, so the merge of 1 and 2 never happens; that of
  // gpt-2 does not.
  EXPECT_EQ(tokenizer.encode("12", false, false), (Ids{letter('1'), letter('2')}));
  EXPECT_EQ(load(tiny_bpe("gpt-2")).encode("12", false, false), (Ids{273}));
  EXPECT_EQ(tokenizer.encode("\xC3\xA9", false, false), (Ids{270}));
}

TEST(GgufBytePairs, SpecialTokensAreParsedOnlyWhenAsked) {
  const Tokenizer tokenizer = load(tiny_bpe());
  EXPECT_EQ(tokenizer.encode("<|im_end|>hello", false, true), (Ids{2, 262}));
  const Ids plain = tokenizer.encode("<|im_end|>hello", false, false);
  EXPECT_EQ(plain.front(), letter('<'));
  EXPECT_EQ(tokenizer.decode(plain, true), "<|im_end|>hello");
  // User-defined tokens are ordinary text that is one token.
  EXPECT_EQ(tokenizer.encode("hello<tool>hello", false, false), (Ids{262, 274, 262}));
  EXPECT_TRUE(tokenizer.is_special(2));
  EXPECT_FALSE(tokenizer.is_special(274));
  EXPECT_FALSE(tokenizer.is_special(262));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_FALSE(tokenizer.is_special(5000));
}

TEST(GgufBytePairs, PromptsGetOneBos) {
  const Tokenizer tokenizer = load(tiny_bpe());
  EXPECT_EQ(tokenizer.encode_prompt("hello"), (Ids{0, 262}));
  EXPECT_EQ(tokenizer.encode_prompt("<|start|>hello"), (Ids{0, 262}));
  EXPECT_EQ(tokenizer.encode_prompt(""), (Ids{0}));
  TinyVocab vocab = tiny_bpe();
  vocab.set("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(load(vocab).encode_prompt("hello"), (Ids{262}));
}

TEST(GgufBytePairs, TokensGiveTheirBytes) {
  const Tokenizer tokenizer = load(tiny_bpe());
  EXPECT_EQ(tokenizer.token_bytes(267), " world");
  EXPECT_EQ(tokenizer.token_bytes(3), std::string_view("\0", 1));
  EXPECT_EQ(tokenizer.token_bytes(272), "\xF0\x9F\x98");
  EXPECT_EQ(tokenizer.token_bytes(2), "<|im_end|>");
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_EQ(tokenizer.token_bytes(275), "");
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(tokenizer.token_bytes(3 + byte), std::string(1, static_cast<char>(byte)));
  }
}

TEST(GgufBytePairs, EndsAreFoundByKeyAndByText) {
  TinyVocab vocab = tiny_bpe();
  const int32_t eot = vocab.add("<|eot_id|>");  // some files call it ordinary
  const int32_t other = vocab.add("<|bye|>", kControlToken);
  vocab.set("tokenizer.ggml.eot_token_id", int64_t{other});
  const Tokenizer tokenizer = load(vocab);
  EXPECT_EQ(Ids(tokenizer.end_ids().begin(), tokenizer.end_ids().end()), (Ids{2, eot, other}));
  EXPECT_TRUE(tokenizer.is_end(eot));
  EXPECT_TRUE(tokenizer.is_special(eot));
  EXPECT_FALSE(tokenizer.is_end(0));
}

TEST(GgufBytePairs, AnEndTextMadeByMergingIsOrdinary) {
  TinyVocab vocab = tiny_bpe();
  vocab.merge("<", "/");
  vocab.merge("s", ">");
  const int32_t tag = vocab.merge("</", "s>");
  const Tokenizer tokenizer = load(vocab);
  EXPECT_FALSE(tokenizer.is_end(tag));
  EXPECT_FALSE(tokenizer.is_special(tag));
}

TEST(GgufBytePairs, AUserDefinedTagIsOrdinary) {
  TinyVocab vocab = tiny_bpe();
  const int32_t tag = vocab.add("</s>", kUserToken);
  const Tokenizer tokenizer = load(vocab);
  EXPECT_FALSE(tokenizer.is_end(tag));
  EXPECT_EQ(tokenizer.encode("hello</s>", false, false), (Ids{262, tag}));
}

TEST(GgufBytePairs, CharactersAreComposedWhereTheModelDoesSo) {
  const std::string decomposed = "e\xCC\x81";
  EXPECT_EQ(load(tiny_bpe("qwen2")).encode(decomposed, false, false), (Ids{270}));
  EXPECT_EQ(load(tiny_bpe("llama-bpe")).encode(decomposed, false, false).size(), 3u);
}

TEST(GgufBytePairs, TheHarmonyFormatEndsMessagesWithinATurn) {
  TinyVocab vocab = tiny_bpe();
  const int32_t end = vocab.add("<|end|>", kControlToken);
  const int32_t back = vocab.add("<|return|>", kControlToken);
  const int32_t call = vocab.add("<|call|>", kControlToken);
  const Tokenizer tokenizer = load(vocab);
  EXPECT_FALSE(tokenizer.is_end(end));
  EXPECT_TRUE(tokenizer.is_end(back));
  EXPECT_TRUE(tokenizer.is_end(call));
}

TEST(GgufBytePairs, WholePiecesCountWhereTheKindSaysSo) {
  TinyVocab vocab = tiny_bpe("llama-bpe");
  const int32_t whole = vocab.add("zebra");
  EXPECT_EQ(load(vocab).encode("zebra", false, false), (Ids{whole}));
  TinyVocab merging = tiny_bpe("qwen2");
  merging.add("zebra");
  EXPECT_EQ(load(merging).encode("zebra", false, false).size(), 5u);
}

TEST(GgufBytePairs, InvalidUtf8IsReadAsReplacementCharacters) {
  const Tokenizer tokenizer = load(tiny_bpe());
  EXPECT_EQ(tokenizer.encode("hello\xFF", false, false),
            tokenizer.encode("hello\xEF\xBF\xBD", false, false));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("\xE2\x82", false, false), false), "\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(std::string_view("a\0b", 3), false, false), false),
            std::string_view("a\0b", 3));
}

TEST(GgufBytePairs, LongRunsOfOneCharacterAreFast) {
  for (const char* pre : {"smollm", "llama-bpe", "deepseek-v3", "default"}) {
    const Tokenizer tokenizer = load(tiny_bpe(pre));
    for (const char c : {'a', ' ', '\n', '1'}) {
      const bool whole = std::string_view(pre) == "smollm" && (c == 'a' || c == ' ');
      const std::string text(whole ? 1 << 20 : 1 << 16, c);
      const Ids ids = tokenizer.encode(text, false, false);
      EXPECT_EQ(tokenizer.decode(ids, false), text) << pre << " " << c;
    }
  }
}

TEST(GgufScoredPairs, MergesByScoreAndFallsBackToBytes) {
  const Tokenizer tokenizer = load(tiny_spm());
  EXPECT_EQ(tokenizer.encode("hello", false, false), (Ids{268}));
  EXPECT_EQ(tokenizer.encode("hello", true, false), (Ids{1, 268}));
  EXPECT_EQ(tokenizer.encode(" hello", false, false), (Ids{259, 268}));
  EXPECT_EQ(tokenizer.encode("\xC3\xA9", false, false), (Ids{259, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(tokenizer.encode("hel\n\nhel", false, false), (Ids{266, 270, 266}));
  EXPECT_EQ(tokenizer.encode("</s>", false, true), (Ids{2}));
  EXPECT_EQ(tokenizer.decode(Ids{268, 268}, false), "hello hello");
  EXPECT_EQ(tokenizer.decode(Ids{1, 268}, true), "hello");
  EXPECT_EQ(tokenizer.decode(Ids{259, 3 + 0xC3, 3 + 0xA9}, true), "\xC3\xA9");
  EXPECT_EQ(tokenizer.token_bytes(3 + 0x0A), "\n");
  EXPECT_EQ(tokenizer.token_bytes(268), " hello");
  EXPECT_EQ(*tokenizer.bos_id(), 1);
  EXPECT_EQ(*tokenizer.eos_id(), 2);
  EXPECT_TRUE(tokenizer.is_end(2));
}

TEST(GgufScoredPairs, TextNeverBecomesASpecialOrAByteToken) {
  const Tokenizer tokenizer = load(tiny_spm());
  for (const std::string text : {"</s>", "<s>", "<unk>", "<0x41>"}) {
    for (const int32_t id : tokenizer.encode(text, false, false)) {
      EXPECT_FALSE(tokenizer.is_special(id)) << text;
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false, false), true), text);
  }
}

TEST(GgufScoredPairs, TheSpaceInFrontIsASetting) {
  TinyVocab vocab = tiny_spm();
  vocab.set("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer tokenizer = load(vocab);
  EXPECT_EQ(tokenizer.encode("hello", false, false), (Ids{260, 265, 267}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(" hello", false, false), false), " hello");
}

TEST(GgufScoredPairs, LongRunsOfOneCharacterAreFast) {
  const Tokenizer tokenizer = load(tiny_spm());
  for (const char c : {'l', ' ', 'z'}) {
    const std::string text(c == 'z' ? 1 << 20 : 1 << 17, c);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false, false), false), text) << c;
  }
}

TEST(GgufWordPieces, SplitsWordsIntoPieces) {
  TinyVocab vocab("bert");
  const std::string start = "\xE2\x96\x81";
  vocab.add("[PAD]", kControlToken);
  vocab.add("[UNK]", kControlToken);
  vocab.add("[CLS]", kControlToken);
  vocab.add("[SEP]", kControlToken);
  vocab.add(start + "play");  // 4
  vocab.add("ing");           // 5
  vocab.add(start + ",");     // 6
  vocab.set("tokenizer.ggml.bos_token_id", int64_t{2});
  vocab.set("tokenizer.ggml.seperator_token_id", int64_t{3});
  vocab.set("tokenizer.ggml.unknown_token_id", int64_t{1});
  const Tokenizer tokenizer = load(vocab);
  EXPECT_EQ(tokenizer.encode("Playing, PLAY zebra", true, false), (Ids{2, 4, 5, 6, 4, 1, 3}));
  EXPECT_EQ(tokenizer.decode(Ids{4, 5}, true), "playing");
}

TEST(GgufUnigram, TakesTheMostProbablePieces) {
  TinyVocab vocab("t5");
  const std::string space = "\xE2\x96\x81";
  vocab.add("<pad>", kControlToken);
  vocab.add("</s>", kControlToken);
  vocab.add("<unk>", kUnknownToken);
  vocab.add(space, kNormalToken, -2);         // 3
  vocab.add(space + "ab", kNormalToken, -3);  // 4
  vocab.add("a", kNormalToken, -1);           // 5
  vocab.add("b", kNormalToken, -1.5);         // 6
  vocab.add("bc", kNormalToken, -1.6);        // 7
  vocab.add("c", kNormalToken, -4);           // 8
  vocab.set("tokenizer.ggml.add_space_prefix", true);
  vocab.set("tokenizer.ggml.remove_extra_whitespaces", true);
  const Tokenizer tokenizer = load(vocab);
  EXPECT_EQ(tokenizer.encode("ab", false, false), (Ids{4}));
  EXPECT_EQ(tokenizer.encode("abc", true, false), (Ids{3, 5, 7, 1}));
  EXPECT_EQ(tokenizer.encode("  ab   ab ", false, false), (Ids{4, 4}));
  EXPECT_EQ(tokenizer.encode("ab</s>", false, true), (Ids{4, 1}));
  EXPECT_EQ(tokenizer.encode("abz", false, false), (Ids{4, 2}));
}

TEST(GgufLongestMatch, TakesTheLongestTokenAtEachByte) {
  TinyVocab vocab("rwkv");
  vocab.add("<s>", kControlToken);
  vocab.add("a");           // 1
  vocab.add("ab");          // 2
  vocab.add("abcd");        // 3
  vocab.add("c");           // 4
  vocab.add("\\n");         // 5
  vocab.add("\\xe4\\xbd");  // 6
  vocab.add("\\xa0");       // 7
  vocab.add("\\\\");        // 8
  const Tokenizer tokenizer = load(vocab);
  EXPECT_EQ(tokenizer.encode("abcabcd", false, false), (Ids{2, 4, 3}));
  EXPECT_EQ(tokenizer.encode("\n\\", false, false), (Ids{5, 8}));
  EXPECT_EQ(tokenizer.encode("\xE4\xBD\xA0", false, false), (Ids{6, 7}));
  EXPECT_EQ(tokenizer.decode(Ids{6, 7}, false), "\xE4\xBD\xA0");
  EXPECT_THROW(tokenizer.encode("z", false, false), Error);
}

TEST(GgufErrors, NameWhatIsWrong) {
  const auto with = [](const std::string& key, formats::MetadataValue value) {
    TinyVocab vocab = tiny_bpe();
    vocab.set(key, std::move(value));
    return error_of(vocab);
  };
  EXPECT_EQ(
      with("tokenizer.ggml.model", std::string("plamo2")),
      "tokenizer.ggml.model: 'plamo2' is not supported (known: gpt2, gemma4, llama, bert, t5, "
      "rwkv)");
  EXPECT_EQ(with("tokenizer.ggml.pre", std::string("martian")),
            "tokenizer.ggml: the pre-tokenizer 'martian' is not supported");
  EXPECT_EQ(with("tokenizer.ggml.bos_token_id", int64_t{275}),
            "tokenizer.ggml.bos_token_id: token 275 is out of range, the vocabulary has 275");
  EXPECT_EQ(with("tokenizer.ggml.eos_token_id", int64_t{-7}),
            "tokenizer.ggml.eos_token_id: token -7 is out of range, the vocabulary has 275");
  EXPECT_EQ(with("tokenizer.ggml.token_type", std::vector<int64_t>{1, 1}),
            "tokenizer.ggml.token_type: 2 entries for 275 tokens");
  EXPECT_EQ(with("tokenizer.ggml.scores", std::vector<double>{1}),
            "tokenizer.ggml.scores: 1 entries for 275 tokens");
  EXPECT_EQ(with("tokenizer.ggml.tokens", std::vector<std::string>{}),
            "the key tokenizer.ggml.tokens is missing or empty");
  EXPECT_EQ(with("tokenizer.ggml.merges", std::vector<std::string>{"h e", "no pair here"}),
            "tokenizer.ggml: merge 1 'no pair here': no token 'no'");
  EXPECT_EQ(with("tokenizer.ggml.merges", std::vector<std::string>{"hello"}),
            "tokenizer.ggml: merge 0 'hello' is not a pair");
  EXPECT_EQ(error_of(TinyVocab("gpt2")), "the key tokenizer.ggml.tokens is missing or empty");
  EXPECT_THROW(Tokenizer::from_gguf(formats::Metadata()), Error);
  EXPECT_EQ(with("tokenizer.ggml.tokens", std::vector<std::string>(275, "\xFF")),
            "tokenizer.ggml: token 0 is not UTF-8");
}

TEST(GgufErrors, AllBitsSetMeansNoToken) {
  TinyVocab vocab = tiny_bpe();
  vocab.set("tokenizer.ggml.bos_token_id", int64_t{0xFFFFFFFF});
  const Tokenizer tokenizer = load(vocab);
  EXPECT_FALSE(tokenizer.bos_id());
  EXPECT_FALSE(tokenizer.adds_bos());
  EXPECT_EQ(tokenizer.encode("hello", true, false), (Ids{262}));
}

}  // namespace
}  // namespace wisp::text
