#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "text/text_model.h"
#include "tiny_vocab.h"

namespace wisp::text {
namespace {

using Ids = std::vector<int32_t>;
namespace fs = std::filesystem;

fs::path data(const char* name) { return fs::path(WISP_SOURCE_DIR) / "tests/data/text" / name; }

// A copy of a fixture folder in which single files may be replaced.
class Folder {
 public:
  Folder(const char* name, const char* fixture)
      : path_(fs::path(WISP_BUILD_DIR) / "text_test" / name) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    if (fixture != nullptr) fs::copy(data(fixture), path_);
  }
  ~Folder() { fs::remove_all(path_); }

  void write(const char* name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  std::string error() const {
    try {
      TextModel::open_folder(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(HuggingFace, ReadsIdsAndSettingsOfTheFolder) {
  const Tokenizer tokenizer = Tokenizer::from_json_file(data("bpe") / "tokenizer.json");
  EXPECT_EQ(tokenizer.vocab_size(), 275u);
  EXPECT_EQ(tokenizer.encode("hello world", true, false), (Ids{0, 262, 267}));
  EXPECT_EQ(tokenizer.encode("<|im_end|>", false, true), (Ids{2}));
  EXPECT_EQ(tokenizer.encode("<|im_end|>", false, false).size(), 10u);
  EXPECT_EQ(*tokenizer.bos_id(), 0);
  EXPECT_EQ(*tokenizer.eos_id(), 2);
  EXPECT_EQ(Ids(tokenizer.end_ids().begin(), tokenizer.end_ids().end()), (Ids{1, 2}));
  EXPECT_TRUE(tokenizer.is_special(1));
  EXPECT_FALSE(tokenizer.is_special(274));
  EXPECT_EQ(tokenizer.encode_prompt("<|start|>hello"), (Ids{0, 262}));
}

TEST(HuggingFace, EqualsTheSameVocabularyInGguf) {
  const Tokenizer json = Tokenizer::from_json_file(data("bpe") / "tokenizer.json");
  const Tokenizer gguf = Tokenizer::from_gguf(tiny_bpe().metadata());
  for (const std::string text :
       {"hello world", "  hello   world\n\n 12 34", "caf\xC3\xA9 \xF0\x9F\x98\x80",
        "<tool><|start|>", "don't \t x\r\ny"}) {
    for (const bool special : {false, true}) {
      const Ids ids = json.encode(text, true, special);
      EXPECT_EQ(ids, gguf.encode(text, true, special)) << text;
      EXPECT_EQ(json.decode(ids, true), gguf.decode(ids, true)) << text;
    }
  }
  for (int32_t id = 0; id < 275; ++id) {
    EXPECT_EQ(json.token_bytes(id), gguf.token_bytes(id)) << id;
    EXPECT_EQ(json.is_special(id), gguf.is_special(id)) << id;
  }
}

TEST(HuggingFace, DecodesPiecesWithSpacesAndBytes) {
  const Tokenizer tokenizer = Tokenizer::from_json_file(data("spm") / "tokenizer.json");
  const Ids ids = tokenizer.encode("hello  \xE4\xBD\xA0", true, false);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids.back(), 2);  // add_eos_token of tokenizer_config.json
  EXPECT_EQ(tokenizer.decode(ids, true), "hello  \xE4\xBD\xA0");
  EXPECT_EQ(tokenizer.token_bytes(3 + 0xE4), "\xE4");
  EXPECT_TRUE(tokenizer.strips_first_space());
}

TEST(HuggingFace, OpensFoldersWithTheirTemplates) {
  const TextModel model = TextModel::open_folder(data("bpe"));
  EXPECT_EQ(model.chat_template().variants(), (std::vector<std::string>{"default", "tool_use"}));
  const std::vector<ChatMessage> messages = {{"user", "hello"}};
  EXPECT_EQ(model.chat_template().render(messages),
            "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
  const Ids ids = model.encode_chat(messages);
  EXPECT_EQ(ids[0], 0);  // the model wants BOS, the template does not write it
  EXPECT_EQ(ids[1], 1);
  EXPECT_EQ(
      model.encode_chat(messages, {.variables_json = R"({"tools":[]})", .variant = "tool_use"})
          .front(),
      0);
}

TEST(HuggingFace, AFolderWithoutTokenizerGivesOneLine) {
  const Folder folder("empty", nullptr);
  EXPECT_EQ(folder.error(),
            folder.path().string() + ": no tokenizer.json, so text cannot be read or written");
}

TEST(HuggingFace, AFolderWithoutTemplateSaysSoWhenItIsUsed) {
  Folder folder("no_template", "spm");
  const TextModel model = TextModel::open_folder(folder.path());
  EXPECT_FALSE(model.has_chat_template());
  EXPECT_THROW(model.chat_template(), Error);
  TextModel changed = TextModel::open_folder(folder.path());
  changed.set_chat_template("{{ messages[0].content }}{{ eos_token }}");
  const std::vector<ChatMessage> messages = {{"user", "hello"}};
  EXPECT_EQ(changed.chat_template().render(messages), "hello</s>");
}

TEST(HuggingFace, ABrokenTemplateIsAnErrorOnlyWhenItIsUsed) {
  Folder folder("broken_template", "bpe");
  folder.write("chat_template.jinja", "{% for %}");
  const TextModel model = TextModel::open_folder(folder.path());
  EXPECT_EQ(model.tokenizer().vocab_size(), 275u);
  EXPECT_THROW(model.chat_template(), Error);
}

TEST(HuggingFace, TemplatesComeFromTheNewestPlace) {
  Folder folder("places", "bpe");
  folder.write("chat_template.json", R"({"chat_template":"from json"})");
  const std::vector<ChatMessage> none;
  EXPECT_EQ(TextModel::open_folder(folder.path()).chat_template().render(none), "from json");
  folder.write("chat_template.jinja", "from jinja");
  EXPECT_EQ(TextModel::open_folder(folder.path()).chat_template().render(none), "from jinja");
  fs::create_directories(folder.path() / "additional_chat_templates");
  folder.write("additional_chat_templates/rag.jinja", "with documents");
  EXPECT_EQ(TextModel::open_folder(folder.path()).chat_template().render(none, {.variant = "rag"}),
            "with documents");
}

TEST(HuggingFace, BrokenFilesGiveOneLineThatNamesThem) {
  const std::string whole = read_text(data("bpe") / "tokenizer.json");
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), whole.substr(0, whole.size() / 2),
        std::string("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4294967295},\"merges\":[]}}"),
        std::string(
            "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"b\"]]}}"),
        std::string("{\"model\":{\"type\":\"Nothing\"}}")}) {
    Folder folder("broken", "bpe");
    folder.write("tokenizer.json", text);
    const std::string error = folder.error();
    EXPECT_TRUE(error.starts_with((folder.path() / "tokenizer.json").string() + ": ")) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  for (const char* name : {"tokenizer_config.json", "generation_config.json", "config.json"}) {
    Folder folder("broken", "bpe");
    folder.write(name, "{\"eos_token_id\": ");
    EXPECT_EQ(folder.error(),
              (folder.path() / name).string() + " is not valid JSON: error at byte 18 of 17");
  }
  Folder folder("broken", "bpe");
  folder.write("generation_config.json", R"({"eos_token_id":[2,9000]})");
  EXPECT_EQ(folder.error(),
            (folder.path() / "generation_config.json").string() +
                ": eos_token_id: token 9000 is out of range, the vocabulary has 275");
  folder.write("generation_config.json", R"({"eos_token_id":"x"})");
  EXPECT_EQ(folder.error(), (folder.path() / "generation_config.json").string() +
                                ": eos_token_id: expected token ids");
}

}  // namespace
}  // namespace wisp::text
