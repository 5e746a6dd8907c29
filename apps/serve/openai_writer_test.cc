// OpenAI's answers and streams, chunk by chunk.
#include "testing.h"

namespace coppice::serve {
namespace {

using testing::events_of;
using testing::play;

std::string chat(const std::string& more = "") {
  return R"({"messages":[{"role":"user","content":"hi"}])" + more + "}";
}
std::string completion(const std::string& more = "") { return R"({"prompt":"hi")" + more + "}"; }

constexpr const char* kTools =
    R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";

TEST(ChatAnswer, HasOpenAisFields) {
  const Json answer = Json::parse(play(Api::chat_completions, chat(), {{{"Hel", "lo"}}}));
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["id"], "id");
  EXPECT_EQ(answer["model"], "tiny");
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_EQ(choice["message"], (Json{{"role", "assistant"}, {"content", "Hello"}, {"refusal", nullptr}}));
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["stop_reason"], "end_of_text");
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 3);
  EXPECT_EQ(answer["usage"]["total_tokens"], 7 + answer["usage"]["completion_tokens"].get<int>());
  EXPECT_FALSE(answer.contains("speculation"));
  EXPECT_FALSE(answer.contains("coppice"));
}

TEST(ChatAnswer, AStreamBeginsWithTheRoleAndEndsWithTheReason) {
  const auto events = events_of(
      play(Api::chat_completions, chat(R"(,"stream":true)"), {{{"Hel", "lo"}, StopReason::max_tokens}}));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(events[1]["choices"][0]["delta"], (Json{{"content", "Hel"}}));
  EXPECT_TRUE(events[1]["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(events[3]["choices"][0]["delta"], Json::object());
  EXPECT_EQ(events[3]["choices"][0]["finish_reason"], "length");
  for (const Json& event : events) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_FALSE(event.contains("usage"));
  }
}

TEST(ChatAnswer, UsageComesInAChunkOfItsOwnWhereItIsAskedFor) {
  const auto events = events_of(play(
      Api::chat_completions, chat(R"(,"stream":true,"stream_options":{"include_usage":true})"), {{{"a"}}}));
  EXPECT_TRUE(events[1]["usage"].is_null());
  EXPECT_EQ(events.back()["choices"], Json::array());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 1);
}

TEST(ChatAnswer, HeldTextComesWithTheEnd) {
  const auto events = events_of(
      play(Api::chat_completions, chat(R"(,"stream":true)"), {{{"a"}, StopReason::end_of_text, "bc"}}));
  EXPECT_EQ(events[2]["choices"][0]["delta"]["content"], "bc");
}

TEST(ChatAnswer, LogprobsStandBesideTheirTextWithItsBytes) {
  const std::string body = chat(R"(,"logprobs":true,"top_logprobs":2)");
  const Json answer = Json::parse(play(Api::chat_completions, body, {{{"a\u00fc"}}}));
  const Json& content = answer["choices"][0]["logprobs"]["content"];
  Json bytes = Json::array();
  for (const Json& token : content) {
    EXPECT_EQ(token["logprob"], -0.5);
    EXPECT_EQ(token["top_logprobs"].size(), 2u);
    for (const Json& byte : token["bytes"]) bytes.push_back(byte);
  }
  EXPECT_EQ(bytes, (Json{97, 0xC3, 0xBC}));
}

TEST(ChatAnswer, ChoicesOfOnePromptCountItOnce) {
  const Json answer = Json::parse(play(Api::chat_completions, chat(R"(,"n":2)"), {{{"a"}}, {{"b"}}}));
  EXPECT_EQ(answer["choices"][1]["index"], 1);
  EXPECT_EQ(answer["choices"][1]["message"]["content"], "b");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 2);
}

TEST(ChatAnswer, ACallOfAToolIsNoContent) {
  const std::vector<testing::Played> said = {{{R"({"name": "f", )", R"("arguments": {"x")", R"(: 1}})"}}};
  const Json answer = Json::parse(play(Api::chat_completions, chat(kTools), said));
  const Json& choice = answer["choices"][0];
  EXPECT_TRUE(choice["message"]["content"].is_null());
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  const Json& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["id"].get<std::string>().size(), 9u);
  EXPECT_EQ(call["function"], (Json{{"name", "f"}, {"arguments", R"({"x": 1})"}}));
}

TEST(ChatAnswer, ACallStreamsItsNameFirstAndThenItsArguments) {
  const std::vector<testing::Played> said = {{{R"({"name": "f", )", R"("arguments": {"x")", R"(: 1}})"}}};
  const auto events =
      events_of(play(Api::chat_completions, chat(std::string(kTools) + R"(,"stream":true)"), said));
  ASSERT_EQ(events.size(), 5u);
  const auto call = [&](std::size_t i) { return events[i]["choices"][0]["delta"]["tool_calls"][0]; };
  EXPECT_EQ(call(1)["function"], (Json{{"name", "f"}, {"arguments", ""}}));
  EXPECT_EQ(call(1)["index"], 0);
  EXPECT_TRUE(call(1).contains("id"));
  EXPECT_EQ(call(2), (Json{{"index", 0}, {"function", {{"arguments", R"({"x")"}}}}));
  EXPECT_EQ(call(3)["function"]["arguments"], ": 1}");
  EXPECT_EQ(events[4]["choices"][0]["finish_reason"], "tool_calls");
}

TEST(CompletionAnswer, HasOpenAisFieldsAndEchoes) {
  const Json answer = Json::parse(
      play(Api::completions, completion(R"(,"echo":true)"), {{{"Hel", "lo"}, StopReason::stop_string}}));
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"][0]["text"], "hiHello");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  const auto events =
      events_of(play(Api::completions, completion(R"(,"echo":true,"stream":true)"), {{{"Hel", "lo"}}}));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "hi");
  EXPECT_EQ(events[1]["choices"][0]["text"], "Hel");
  EXPECT_EQ(events[3]["choices"][0]["text"], "");
}

TEST(CompletionAnswer, OffsetsOfTokensAreCharactersOfTheText) {
  for (const bool stream : {false, true}) {
    const std::string out = play(
        Api::completions, completion(std::string(R"(,"logprobs":1)") + (stream ? R"(,"stream":true)" : "")),
        {{{"a\u00fcb", "c"}}});
    Json offsets = Json::array(), tokens = Json::array();
    for (const Json& answer : stream ? events_of(out) : std::vector<Json>{Json::parse(out)}) {
      const Json& logprobs = answer["choices"][0]["logprobs"];
      if (logprobs.is_null()) continue;
      for (const Json& offset : logprobs["text_offset"]) offsets.push_back(offset);
      for (const Json& token : logprobs["tokens"]) tokens.push_back(token);
    }
    // The two bytes of one character are two tokens here.
    EXPECT_EQ(offsets, (Json{0, 1, 1, 2, 3}));
    EXPECT_EQ(tokens.front(), "a");
    EXPECT_EQ(tokens.back(), "c");
  }
}

TEST(CompletionAnswer, TheTextsOfATraceAreTheText) {
  const std::string ask = completion(R"(,"speculation":{"trace":true},"stream":true)");
  const std::vector<testing::Played> said = {{{"one\u00fc", " two"}, StopReason::end_of_text, " th"}};
  std::string joined, text;
  bool tree = false;
  const auto events = events_of(play(Api::completions, ask, said));
  for (const Json& event : events) {
    text += event["choices"][0]["text"].get<std::string>();
    if (!event.contains("coppice")) continue;
    for (const Json& token : event["coppice"]["tokens"]) {
      joined += token["text"].get<std::string>();
      EXPECT_TRUE(token["source"].is_null() || token["source"] == "lookup");
    }
    if (event["coppice"]["tree"].is_null()) continue;
    tree = true;
    EXPECT_EQ(event["coppice"]["tree"]["nodes"][1]["sources"], (Json{"lookup", "ngram"}));
  }
  EXPECT_EQ(text, "one\u00fc two th");
  EXPECT_EQ(joined, text);
  EXPECT_TRUE(tree);
  EXPECT_EQ(events.back()["speculation"]["tokens"], events.back()["speculation"]["tokens"].get<int>());
}

TEST(CompletionAnswer, AnErrorInTheMiddleIsTheStreamsLastEvent) {
  const auto ask = Ask::parse(Api::completions, completion(R"(,"stream":true)"));
  AnswerContext context;
  context.prompt_tokens = {1};
  const auto writer = AnswerWriter::make(**ask, testing::test_model(), context);
  ApiError error;
  error.message = "broken";
  const std::string out = writer->fail(error);
  EXPECT_EQ(out.substr(0, 6), "data: ");
  EXPECT_EQ(Json::parse(out.substr(6))["error"]["message"], "broken");
  EXPECT_STREQ(writer->content_type(), "text/event-stream");
}

}  // namespace
}  // namespace coppice::serve
