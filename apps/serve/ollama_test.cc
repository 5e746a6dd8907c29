// Ollama's answers, line by line, and its list of models.
#include "testing.h"

namespace coppice::serve {
namespace {

using testing::error_of;
using testing::lines_of;
using testing::play;

TEST(OllamaAnswer, StreamsLinesAndEndsWithItsNumbers) {
  const auto lines =
      lines_of(play(Api::ollama_chat, R"({"messages":[{"role":"user","content":"hi"}]})", {{{"Hel", "lo"}}}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["message"], (Json{{"role", "assistant"}, {"content", "Hel"}}));
  EXPECT_EQ(lines[0]["done"], false);
  EXPECT_EQ(lines[2]["done"], true);
  EXPECT_EQ(lines[2]["done_reason"], "stop");
  EXPECT_EQ(lines[2]["prompt_eval_count"], 7);
  EXPECT_GT(lines[2]["total_duration"], 0);
  EXPECT_EQ(lines[2]["message"]["content"], "");
}

TEST(OllamaAsk, AShareOutOfRangeIsRefusedInOneSentenceWhereverItIs) {
  for (const char* name : {"top_p", "typical_p"}) {
    for (const char* value : {"0", "2", "-1", "true"}) {
      const std::string field = std::string(name) + "\":" + value;
      const std::string wrong = std::string(" must be above 0 and at most 1, which is off, not ") + value;
      const ApiError ollama = error_of(Api::ollama_generate, R"({"prompt":"hi","options":{")" + field + "}}");
      EXPECT_EQ(ollama.message, "options." + std::string(name) + ":" + wrong);
      EXPECT_EQ(error_of(Api::completions, R"({"prompt":"hi",")" + field + "}").message,
                name + (":" + wrong));
    }
  }
}

TEST(OllamaAnswer, IsOneObjectWithoutAStream) {
  const Json answer = Json::parse(play(Api::ollama_generate, R"({"prompt":"hi","stream":false})",
                                       {{{"Hel"}, StopReason::max_tokens, "lo"}}));
  EXPECT_EQ(answer["response"], "Hello");
  EXPECT_EQ(answer["done_reason"], "length");
  EXPECT_EQ(answer["model"], "tiny");
}

TEST(OllamaAnswer, CallsOfToolsAreObjects) {
  const std::string ask =
      R"({"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}]})";
  const auto lines = lines_of(play(Api::ollama_chat, ask, {{{R"({"name": "f", "arguments": {"x": 1}})"}}}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["message"]["tool_calls"][0]["function"],
            (Json{{"name", "f"}, {"arguments", {{"x", 1}}}}));
}

TEST(ModelLists, NameTheModels) {
  ServedModel model;
  model.name = "tiny";
  model.architecture = "llama";
  model.format = "Q4_0";
  model.parameters = 134500000;
  model.bytes = 5;
  const ServedModel models[] = {model};
  EXPECT_EQ(Json::parse(list_openai(models))["data"][0]["id"], "tiny");
  EXPECT_EQ(Json::parse(show_openai(model))["object"], "model");
  const Json ollama = Json::parse(list_ollama(models))["models"][0];
  EXPECT_EQ(ollama["name"], "tiny");
  EXPECT_EQ(ollama["modified_at"], "1970-01-01T00:00:00Z");
  EXPECT_EQ(ollama["details"]["parameter_size"], "134M");
}

}  // namespace
}  // namespace coppice::serve
