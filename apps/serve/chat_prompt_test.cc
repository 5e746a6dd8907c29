// From conversations and gaps to tokens.
#include "chat_prompt.h"

#include "api/impl.h"
#include "infill.h"
#include "testing.h"
#include "text/test_vocabulary.h"
#include "text/testing.h"

namespace coppice::serve {
namespace {

using testing::load_model;
using testing::requests_of;

constexpr const char* kWithTools =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% "
    "endif %}{% if m.name %}@{{ m.name }}{% endif %}"
    "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}[{{ mood "
    "}}]<tool_call>{% endif %}";

std::string prompt_of(const Model& model, const std::string& body) {
  const auto requests = requests_of(Api::chat_completions, body, model);
  return requests.empty() ? "" : model.tokenizer().decode(requests[0].prompt, true);
}

TEST(ChatPrompt, ToolsVariablesAndEarlierCallsReachTheTemplate) {
  const Model model = load_model(kWithTools);
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  EXPECT_EQ(
      prompt_of(model,
                R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"mood":"calm"},)" +
                    tools + "}"),
      R"(<user>a[{"type": "function", "function": {"name": "f"}}][calm]<tool_call>)");
  EXPECT_EQ(
      prompt_of(model, R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"none",)" + tools + "}"),
      "<user>a[]<tool_call>");
  EXPECT_EQ(
      prompt_of(
          model,
          R"({"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
                                {"role":"tool","tool_call_id":"1","content":"r"}]})"),
      R"(<assistant>None[{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]<tool>r@f[]<tool_call>)");
}

TEST(ChatPrompt, ATemplateThatKnowsNoToolsGetsThemInTheSystemsMessage) {
  const std::string text =
      prompt_of(testing::test_model(),
                R"({"messages":[{"role":"system","content":"Be kind"},{"role":"user","content":"a"}],
      "tools":[{"type":"function","function":{"name":"weather","description":"of a city"}}]})");
  EXPECT_NE(text.find("Be kind\n\nYou can call these functions"), std::string::npos);
  EXPECT_NE(text.find("{\"name\":\"weather\",\"description\":\"of a city\""), std::string::npos);
}

TEST(ChatPrompt, ARequiredCallIsOpenedInThePromptAndHeldToASchema) {
  const Model model = load_model(kWithTools);
  const std::string body = R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"required",
      "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"$ref":"#/$defs/n"}},"required":["x"],
                "additionalProperties":false,"$defs":{"n":{"type":"integer"}}}}}]})";
  const auto requests = requests_of(Api::chat_completions, body, model);
  ASSERT_EQ(requests.size(), 1u);
  const std::string text = model.tokenizer().decode(requests[0].prompt, true);
  EXPECT_TRUE(text.ends_with("<tool_call><tool_call>\n")) << text;
  ASSERT_TRUE(requests[0].sampling.grammar);
  EXPECT_TRUE(requests[0].sampling.grammar->accepts(R"({"name":"f","arguments":{"x":1}})"));
  EXPECT_FALSE(requests[0].sampling.grammar->accepts(R"({"name":"g","arguments":{"x":1}})"));
  EXPECT_FALSE(requests[0].sampling.grammar->accepts(R"({"name":"f","arguments":{"x":"1"}})"));
}

TEST(ChatPrompt, ErrorsNameNoFile) {
  const Model model = load_model("{{ raise_exception('roles must alternate') }}");
  const ApiError error =
      testing::error_of(Api::chat_completions, R"({"messages":[{"role":"user","content":"a"}]})", model);
  EXPECT_EQ(error.param, "messages");
  EXPECT_NE(error.message.find("roles must alternate"), std::string::npos);
  EXPECT_EQ(error.message.find(".gguf"), std::string::npos);
}

TEST(ChatPrompt, TokenizeSpeaksOfTextsAndConversations) {
  const Model& model = testing::test_model();
  const auto body = [&](const char* text) { return Json::parse(*tokenize(text, model)); };
  const Json plain = body(R"({"content":"a\u00fc","with_pieces":true})");
  EXPECT_EQ(plain["count"], 3);
  EXPECT_EQ(plain["pieces"], (Json{"a", Json::array({0xC3}), Json::array({0xBC})}));
  EXPECT_EQ(body(R"({"text":"ab"})")["tokens"], Json(model.tokenizer().encode("ab")));
  EXPECT_EQ(
      body(R"({"messages":[{"role":"user","content":"a"}]})")["tokens"],
      Json(requests_of(Api::chat_completions, R"({"messages":[{"role":"user","content":"a"}]})")[0].prompt));
  for (const char* wrong :
       {"{}", R"({"content":"a","model":true})",
        R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"messages":[]}})",
        R"({"content":"a","text":"b"})", R"({"content":1})", R"({"content":"a","messages":[]})"})
    EXPECT_EQ(tokenize(wrong, model).error().status, 400) << wrong;
}

Tokenizer with_tokens(std::initializer_list<const char*> spellings) {
  core::Vocabulary vocabulary = core::testing::small_vocabulary();
  for (const char* spelling : spellings) {
    vocabulary.tokens.emplace_back(spelling);
    vocabulary.kinds.push_back(core::TokenKind::control);
  }
  return Tokenizer(std::make_shared<Tokenizer::Impl>(
      Tokenizer::Impl{core::testing::make_tokenizer(std::move(vocabulary))}));
}

TEST(Infill, IsWrittenAsTheModelsFamilyWritesIt) {
  const Tokenizer coder = with_tokens({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  EXPECT_EQ(coder.decode(*infill_prompt(coder, "be", "hind"), true),
            "<|fim_prefix|>be<|fim_suffix|>hind<|fim_middle|>");
  const Tokenizer backwards = with_tokens({"[PREFIX]", "[SUFFIX]"});
  EXPECT_EQ(backwards.decode(*infill_prompt(backwards, "be", "hind"), true), "[SUFFIX]hind[PREFIX]be");
  EXPECT_FALSE(infill_prompt(with_tokens({}), "be", "hind"));
}

TEST(Infill, TheFilesOwnNamesGoFirst) {
  core::Vocabulary vocabulary = core::testing::small_vocabulary();
  vocabulary.infill = {'B', 'E', 'M'};
  const Tokenizer tokenizer(std::make_shared<Tokenizer::Impl>(
      Tokenizer::Impl{core::testing::make_tokenizer(std::move(vocabulary))}));
  EXPECT_EQ(tokenizer.decode(*infill_prompt(tokenizer, "be", "hind")), "BbeEhindM");
}

TEST(Infill, MarksThatAUserTypesStayText) {
  const Tokenizer coder = with_tokens({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  const auto plain = infill_prompt(coder, "", ""), typed = infill_prompt(coder, "<|fim_middle|>", "");
  EXPECT_EQ(std::count(plain->begin(), plain->end(), plain->back()), 1);
  EXPECT_EQ(std::count(typed->begin(), typed->end(), plain->back()), 1);
}

}  // namespace
}  // namespace coppice::serve
