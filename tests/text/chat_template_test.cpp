#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace wisp::text {
namespace {

// Renders with the variables of a JSON object and no messages.
std::string render(const std::string& source, const std::string& variables = "{}") {
  return ChatTemplate(source, "<s>", "</s>")
      .render({}, {.add_generation_prompt = false, .variables_json = variables, .now = 86400 * 45});
}

std::string error_of(const std::string& source) {
  try {
    render(source);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::vector<ChatMessage> kChat = {{"system", "Be brief."},
                                        {"user", " Hi "},
                                        {"assistant", "Yes?"},
                                        {"user", "Bye \xF0\x9F\x98\x80"}};

TEST(ChatTemplate, RendersTurnsAndTheStartOfTheAnswer) {
  const ChatTemplate chatml(
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] "
      "+ '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
      "'<|im_start|>assistant\\n' }}{% endif %}",
      "<s>", "</s>");
  const std::string turns =
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
      "<|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\nBye \xF0\x9F\x98\x80<|im_end|>\n";
  EXPECT_EQ(chatml.render(kChat), turns + "<|im_start|>assistant\n");
  EXPECT_EQ(chatml.render(kChat, {.add_generation_prompt = false}), turns);
}

TEST(ChatTemplate, BlocksAreTrimmedAsInTransformers) {
  EXPECT_EQ(render("{%- set x = 1 %}\n    {% if x %}\n  yes\n    {% endif %}\nend\n"),
            "  yes\nend");
  EXPECT_EQ(render("a\n{#- note -#}\nb"), "ab");
  EXPECT_EQ(render("  {{ 1 }}\n"), "  1");
}

TEST(ChatTemplate, LoopsBreakContinueAndKeepStateInNamespaces) {
  EXPECT_EQ(
      render("{% set ns = namespace(n=0) %}{% for i in range(9) %}{% if i == 2 %}{% continue %}"
             "{% endif %}{% if i > 4 %}{% break %}{% endif %}{% set ns.n = ns.n + i %}"
             "{{ loop.index0 }}{{ ',' if not loop.last }}{% endfor %}={{ ns.n }}"),
      "0,1,3,4,=8");
  EXPECT_EQ(render("{% for m in [1,2,3] if m != 2 %}{{ loop.first }}{{ m }} {% endfor %}"),
            "True1 False3 ");
  EXPECT_EQ(render("{% macro tag(name, close=false) %}<{{ '/' if close }}{{ name }}>{% endmacro %}"
                   "{{ tag('a') }}{{ tag('a', close=true) }}"),
            "<a></a>");
}

TEST(ChatTemplate, ValuesHavePythonsMethods) {
  EXPECT_EQ(render("{{ ' a b '.strip() }}|{{ 'a,b'.split(',')[-1] }}|{{ 'abc'.startswith('ab') }}|"
                   "{{ 'x</think>y'.split('</think>')[0].rstrip('\\n').lstrip('\\n') }}|"
                   "{{ 'abc'[1:] }}|{{ 'abc'[::-1] }}|{{ 'a' in 'abc' }}|{{ 'Ab'.upper() }}"),
            "a b|b|True|x|bc|cba|True|AB");
  EXPECT_EQ(render("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{{ d.get('z', 'none') }}"
                   "{{ d.keys() | list | length }}",
                   R"({"d":{"b":1,"a":"x"}})"),
            "b=1;a=x;none2");
  EXPECT_EQ(render("{{ none }} {{ true }} {{ 1.0 }} {{ [1, 'a', none] }} {{ {'k': false} }}"),
            "None True 1.0 [1, 'a', None] {'k': False}");
  EXPECT_EQ(
      render("{{ 'x' is string }} {{ 'x' is sequence }} {{ {} is mapping }} {{ y is defined }} "
             "{{ [] is iterable }} {{ none is none }}"),
      "True True True False True True");
  EXPECT_EQ(render("{{ 'a' ~ 1 ~ none }}|{{ y }}|{{ [1,2] | join('-') }}|{{ ' x' | trim }}|"
                   "{{ 'abc' | length }}|{{ [3,1] | first }}|{{ m | map(attribute='n') | list }}|"
                   "{{ m | selectattr('n', 'equalto', 2) | list | length }}|{{ y | default('d') }}",
                   R"({"m":[{"n":1},{"n":2}]})"),
            "a1None||1-2|x|3|3|[1, 2]|1|d");
}

TEST(ChatTemplate, JsonHasPythonsSpacing) {
  const std::string value = R"({"v":{"b":[1,2.5,true,null,"é<'&\"\n\u0001"],"a":{},"c":[]}})";
  EXPECT_EQ(render("{{ v | tojson }}", value),
            R"({"b": [1, 2.5, true, null, "é<'&\"\n\u0001"], "a": {}, "c": []})");
  EXPECT_EQ(render("{{ [1,{'a':2}] | tojson(indent=2) }}"), "[\n  1,\n  {\n    \"a\": 2\n  }\n]");
  EXPECT_EQ(render("{{ {'b':1,'a':'\xC3\xA9'} | tojson(sort_keys=true, ensure_ascii=true, "
                   "separators=(',', ':')) }}"),
            "{\"a\":\"\\u00e9\",\"b\":1}");
  EXPECT_EQ(render("{{ [1e16, 1e-5, 0.1, 100.0, 1e22, -0.0] | tojson }}"),
            "[1e+16, 1e-05, 0.1, 100.0, 1e+22, -0.0]");
}

TEST(ChatTemplate, DatesComeFromTheClockGiven) {
  EXPECT_EQ(render("{{ strftime_now('%Y') }} {{ strftime_now('%B') }}"), "1970 February");
  EXPECT_EQ(render("{{ strftime_now('') }}"), "");
}

TEST(ChatTemplate, GenerationTagsOnlyMark) {
  const ChatTemplate marked(
      "{%- for m in messages -%}\n{%- if m.role == 'assistant' -%}\n[{% generation %}{{ m.content "
      "}}"
      "{%- endgeneration -%} ]\n{%- endif -%}\n{%- endfor -%}",
      "<s>", "</s>");
  EXPECT_EQ(marked.render(kChat), "[Yes?]");
}

TEST(ChatTemplate, MessagesMayHaveFurtherFields) {
  const ChatTemplate calls(
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
      "({{ c.function.arguments | tojson }}){% endfor %}{% if m.content is string %}{{ m.content }}"
      "{% else %}{% for p in m.content %}<{{ p.type }}>{% endfor %}{% endif %}{% endfor %}",
      "<s>", "</s>");
  const std::vector<ChatMessage> messages = {
      {"assistant", "",
       R"({"tool_calls":[{"function":{"name":"f","arguments":{"y":1,"x":"z"}}}]})"},
      {"user", "", R"({"content":[{"type":"image"},{"type":"text","text":"t"}]})"}};
  EXPECT_EQ(calls.render(messages), R"(f({"y": 1, "x": "z"})<image><text>)");
  const std::vector<ChatMessage> bad = {{"user", "x", "[1]"}};
  EXPECT_THROW(calls.render(bad), Error);
}

TEST(ChatTemplate, KnowsItsVariablesAndVariants) {
  EXPECT_EQ(
      render("{{ bos_token }}{{ eos_token }}{{ tools[0].name }}", R"({"tools":[{"name":"f"}]})"),
      "<s></s>f");
  formats::Metadata metadata;
  EXPECT_FALSE(ChatTemplate::from_gguf(metadata, "", ""));
  metadata.set("tokenizer.chat_template", std::string("plain"));
  metadata.set("tokenizer.chat_template.tool_use", std::string("tools"));
  metadata.set("tokenizer.chat_templates", std::vector<std::string>{"tool_use"});
  const auto found = ChatTemplate::from_gguf(metadata, "", "");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->render({}), "plain");
  EXPECT_EQ(found->render({}, {.variant = "tool_use"}), "tools");
  try {
    found->render({}, {.variant = "rag"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the model has no chat template 'rag' (it has: default, tool_use)");
  }
}

TEST(ChatTemplate, ErrorsAreOneLine) {
  EXPECT_EQ(error_of("\n{{ raise_exception('Roles must alternate') }}"),
            "chat template: line 2: Roles must alternate");
  EXPECT_EQ(error_of("{{ missing.field }}").find("chat template: line 1: "), 0u);
  EXPECT_EQ(error_of("{{ 'x' | nonsense }}").find("chat template: "), 0u);
  EXPECT_EQ(error_of("{% if %}").find("chat template: line 1: "), 0u);
  EXPECT_EQ(error_of("{{ 'x'.explode() }}").find("chat template: line 1: "), 0u);
  for (const std::string source :
       {"{{ raise_exception('a\nb') }}", "{{ missing.field }}", "{% if %}", "{{ '\xFF' }}"}) {
    EXPECT_NE(error_of(source), "") << source;
    EXPECT_EQ(error_of(source).find('\n'), std::string::npos) << source;
  }
}

// What recurses in the template engine has the room for it.
TEST(ChatTemplate, LongExpressionsAndDeepValues) {
  const auto repeat = [](const std::string& text, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += text;
    return all;
  };
  EXPECT_EQ(render("{{ " + repeat("not ", 60000) + "true }}"), "True");
  EXPECT_EQ(render("{{ 1" + repeat("+1", 100000) + " }}"), "100001");
  EXPECT_EQ(render("{{ 'a'" + repeat("|string", 30000) + " }}"), "a");
  EXPECT_EQ(render("{% set ns = namespace(s=[]) %}{% for i in range(20000) %}"
                   "{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}"),
            repeat("[", 20001) + repeat("]", 20001));
  EXPECT_NE(error_of(repeat("x", 300000)).find("300000 bytes"), std::string::npos);
}

TEST(ChatTemplate, EndlessOnesAreStopped) {
  EXPECT_NE(
      error_of("{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}"),
      "");
  EXPECT_NE(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "");
  EXPECT_NE(error_of("{{ 'xxxxxxxxxxxxxxxx' * 1000000000000 }}"), "");
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += "{% if true %}";
  EXPECT_NE(error_of(deep), "");
  EXPECT_NE(error_of("{{ " + std::string(10000, '(') + "1" + std::string(10000, ')') + " }}"), "");
}

}  // namespace
}  // namespace wisp::text
