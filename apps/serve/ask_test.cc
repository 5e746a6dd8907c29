// What the four APIs accept, refuse, and make of it.
#include <limits>

#include "testing.h"

namespace coppice::serve {
namespace {

using testing::error_of;
using testing::requests_of;

constexpr Api kApis[] = {Api::chat_completions, Api::completions, Api::ollama_chat, Api::ollama_generate};

bool is_chat(Api api) { return api == Api::chat_completions || api == Api::ollama_chat; }

// A right body with `more` in it.
std::string body_of(Api api, const std::string& more = "") {
  const std::string base =
      is_chat(api) ? R"({"messages":[{"role":"user","content":"hi"}])" : R"({"prompt":"hi")";
  return base + (more.empty() ? "" : "," + more) + "}";
}

TEST(Ask, AFieldNobodyKnowsIsNamed) {
  for (const Api api : kApis) {
    EXPECT_EQ(error_of(api, body_of(api)).status, 0);
    const ApiError error = error_of(api, body_of(api, R"("colour":1)"));
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.param, "colour");
    EXPECT_NE(error.message.find("colour"), std::string::npos);
    EXPECT_EQ(error_of(api, body_of(api, R"("speculation":{"colour":1})")).param, "speculation.colour");
  }
}

TEST(Ask, AnErrorQuotesNoMoreThanIsRead) {
  for (const Api api : kApis) {
    const ApiError error = error_of(api, body_of(api, '"' + std::string(100000, 'k') + R"(":1)"));
    EXPECT_LT(error.message.size() + error.param.size(), 1000u);
    EXPECT_TRUE(error.message.ends_with("this field is not known here"));
  }
  EXPECT_EQ(error_of(Api::completions, body_of(Api::completions, R"("":1)")).message,
            "\"\": this field is not known here");
  EXPECT_LT(error_of(Api::completions,
                     body_of(Api::completions, R"("grammar":"root ::= )" + std::string(100000, 'k') + '"'))
                .message.size(),
            3000u);
}

TEST(Ask, NullIsTheSameAsAbsent) {
  for (const Api api : kApis)
    EXPECT_EQ(
        error_of(api, body_of(api, R"("model":null,"stream":null,"speculation":null,"colour":null)")).status,
        0);
  EXPECT_EQ(requests_of(Api::completions, body_of(Api::completions, R"("temperature":null)"))[0]
                .sampling.temperature,
            1);
}

TEST(Ask, AWrongValueIsNamedWithWhatWouldBeRight) {
  const struct {
    Api api;
    const char *more, *param;
  } cases[] = {
      {Api::completions, R"("temperature":-1)", "temperature"},
      {Api::completions, R"("temperature":"hot")", "temperature"},
      {Api::completions, R"("top_p":0)", "top_p"},
      {Api::completions, R"("max_tokens":0)", "max_tokens"},
      {Api::completions, R"("max_tokens":1.5)", "max_tokens"},
      {Api::completions, R"("max_tokens":99999999999999999999)", "max_tokens"},
      {Api::completions, R"("n":0)", "n"},
      {Api::completions, R"("best_of":2)", "best_of"},
      {Api::completions, R"("logprobs":21)", "logprobs"},
      {Api::completions, R"("logprobs":true)", "logprobs"},
      {Api::completions, R"("stop":"")", "stop"},
      {Api::completions, R"("stop":[1])", "stop"},
      {Api::completions, R"("seed":18446744073709551616)", "seed"},
      {Api::completions, R"("user":1)", "user"},
      {Api::completions, R"("safety_identifier":{})", "safety_identifier"},
      {Api::completions, R"("prompt_cache_key":[])", "prompt_cache_key"},
      {Api::completions, R"("stream":true,"stream_options":{"include_obfuscation":1})",
       "stream_options.include_obfuscation"},
      {Api::completions, R"("logit_bias":{"x":1})", "logit_bias"},
      {Api::completions, R"("logit_bias":{"1":101})", "logit_bias"},
      {Api::completions, R"("logit_bias":{"999999":1})", "logit_bias"},
      {Api::completions, R"("stream_options":{"include_usage":true})", "stream_options"},
      {Api::completions, R"("suffix":"x")", "suffix"},
      {Api::completions, R"("echo":true,"logprobs":1,"stop":"a")", "echo"},
      {Api::completions, R"("speculation":{"nodes":256})", "speculation.nodes"},
      {Api::chat_completions, R"("max_tokens":1,"max_completion_tokens":2)", "max_tokens"},
      {Api::chat_completions, R"("top_logprobs":2)", "top_logprobs"},
      {Api::chat_completions, R"("reasoning_effort":"low")", "reasoning_effort"},
      {Api::chat_completions, R"("response_format":{"type":"xml"})", "response_format.type"},
      {Api::chat_completions, R"("response_format":{"type":"json_schema","json_schema":{"name":1}})",
       "response_format.json_schema.name"},
      {Api::chat_completions, R"("chat_template_kwargs":{"bos_token":"x"})",
       "chat_template_kwargs.bos_token"},
      {Api::chat_completions, R"("response_format":{"type":"json_object"},"grammar":"root ::= \"a\"")",
       "response_format"},
      {Api::chat_completions, R"("tool_choice":"required")", "tool_choice"},
      {Api::chat_completions, R"("functions":[])", "functions"},
      {Api::chat_completions, R"("store":true)", "store"},
      {Api::ollama_chat, R"("options":{"mirostat":1})", "options.mirostat"},
      {Api::ollama_chat, R"("format":"xml")", "format"},
      {Api::ollama_chat, R"("think":true)", "think"},
      {Api::ollama_generate, R"("options":{"num_predict":0})", "options.num_predict"},
      {Api::ollama_generate, R"("images":["x"])", "images"},
      {Api::ollama_generate, R"("keep_alive":"5m")", "keep_alive"},
      {Api::ollama_generate, R"("options":{"num_ctx":2},"raw":true,"suffix":null)", ""},
  };
  for (const auto& wrong : cases) {
    const ApiError error = error_of(wrong.api, body_of(wrong.api, wrong.more));
    if (*wrong.param == '\0') continue;
    EXPECT_EQ(error.status, 400) << wrong.more;
    EXPECT_EQ(error.param, wrong.param) << wrong.more << " " << error.message;
    EXPECT_NE(error.message.find(wrong.param), std::string::npos) << error.message;
  }
}

TEST(Ask, MessagesAreNamedByTheirPlace) {
  const struct {
    const char *messages, *param;
  } cases[] = {
      {"[]", "messages"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"poet","content":"x"}])", "messages[0].role"},
      {R"([{"role":"user","content":"x"},{"role":"user","content":"x","mood":1}])", "messages[1].mood"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
       "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"tool","content":"x"}])", "messages[0].tool_call_id"},
      {R"([{"role":"user","content":"x","tool_calls":[]}])", "messages[0].tool_calls"},
      {R"([{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"[]"}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
  };
  for (const auto& wrong : cases)
    EXPECT_EQ(error_of(Api::chat_completions, std::string("{\"messages\":") + wrong.messages + "}").param,
              wrong.param)
        << wrong.messages;
}

TEST(Ask, OpenAisDefaultsHoldWhereNothingIsSaid) {
  const Sampling chat = requests_of(Api::chat_completions, body_of(Api::chat_completions))[0].sampling;
  EXPECT_EQ(chat.temperature, 1);
  EXPECT_EQ(chat.top_p, 1);
  EXPECT_EQ(chat.max_tokens, std::numeric_limits<int>::max());
  EXPECT_EQ(chat.logprobs, -1);
  EXPECT_EQ(chat.penalty_window, -1);
  EXPECT_EQ(requests_of(Api::completions, body_of(Api::completions))[0].sampling.max_tokens, 16);
}

TEST(Ask, OllamasDefaultsHoldThere) {
  const Sampling sampling = requests_of(Api::ollama_generate, body_of(Api::ollama_generate))[0].sampling;
  EXPECT_EQ(sampling.temperature, 0.8F);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.top_p, 0.9F);
  EXPECT_EQ(sampling.repetition_penalty, 1.1F);
  EXPECT_EQ(sampling.penalty_window, 64);
}

TEST(Ask, PromptsComeInEveryFormThatOpenAiHas) {
  const Tokenizer& tokenizer = testing::test_model().tokenizer();
  const auto prompts = [](const std::string& prompt, const std::string& more = "") {
    std::vector<std::vector<Token>> out;
    for (const Request& request : requests_of(Api::completions, "{\"prompt\":" + prompt + more + "}"))
      out.push_back(request.prompt);
    return out;
  };
  using Prompts = std::vector<std::vector<Token>>;
  EXPECT_EQ(prompts("\"one\""), (Prompts{tokenizer.encode("one")}));
  EXPECT_EQ(prompts(R"(["one","two"])"), (Prompts{tokenizer.encode("one"), tokenizer.encode("two")}));
  EXPECT_EQ(prompts("[5,6,7]"), (Prompts{{5, 6, 7}}));
  EXPECT_EQ(prompts("[[5,6],[7]]"), (Prompts{{5, 6}, {7}}));
  EXPECT_EQ(prompts("[[5,6],[7]]", ",\"n\":2"), (Prompts{{5, 6}, {5, 6}, {7}, {7}}));
  for (const char* wrong : {"[]", "[[]]", "[1,\"a\"]", "[-1]", "[1e9]", "{}", "true", "[[1],[\"a\"]]"})
    EXPECT_EQ(error_of(Api::completions, std::string("{\"prompt\":") + wrong + "}").param, "prompt") << wrong;
}

TEST(Ask, ASeedMakesEqualPromptsEqualAndNoSeedMakesThemDiffer) {
  const auto of = [](const std::string& more) {
    return requests_of(Api::completions, R"({"prompt":["a","a"],"n":2)" + more + "}");
  };
  const auto seeded = of(",\"seed\":-5");
  ASSERT_EQ(seeded.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(seeded[i].sampling.seed, static_cast<std::uint64_t>(-5));
    EXPECT_EQ(seeded[i].sampling.stream, 0u);
    EXPECT_EQ(seeded[i].sampling.choice, i % 2);
  }
  const auto free = of("");
  EXPECT_NE(free[0].sampling.seed, of("")[0].sampling.seed);
  EXPECT_NE(free[0].sampling.stream, free[2].sampling.stream);
}

TEST(Ask, ASeedMayHaveAll64BitsWithoutASign) {
  for (const Api api : {Api::completions, Api::ollama_generate}) {
    const std::string seed = R"("seed":18446744073709551615)";
    const std::string more = api == Api::completions ? seed : "\"options\":{" + seed + "}";
    EXPECT_EQ(requests_of(api, body_of(api, more))[0].sampling.seed, ~std::uint64_t{0});
  }
}

TEST(Ask, WhatAnAnswerLooksLikeAndToolsThatMayBeCalledDoNotGoTogether) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":)";
  for (const char* format : {R"("response_format":{"type":"json_object"})", R"("grammar":"root ::= \"a\"")",
                             R"("json_schema":{"type":"integer"})"}) {
    const auto ask = [&](const std::string& choice) {
      return error_of(Api::chat_completions,
                      body_of(Api::chat_completions, tools + choice + "," + std::string(format)));
    };
    const std::string param = std::string(format).substr(1, std::string(format).find('"', 1) - 1);
    for (const char* choice :
         {R"("auto")", R"("required")", R"({"type":"function","function":{"name":"f"}})"})
      EXPECT_EQ(ask(choice).param, param) << choice;
    EXPECT_EQ(ask(R"("none")").status, 0);
  }
}

TEST(Ask, AToolsSchemaIsNamedByItsTool) {
  const auto ask = [&](const std::string& parameters) {
    return error_of(
        Api::chat_completions,
        body_of(Api::chat_completions,
                R"("tool_choice":"required","tools":[{"type":"function","function":{"name":"f"}},)"
                R"({"type":"function","function":{"name":"g","parameters":)" +
                    parameters + "}}]"));
  };
  for (const char* wrong : {R"({"type":"string"})", R"({"type":["object","null"]})"}) {
    EXPECT_EQ(ask(wrong).param, "tools[1].function.parameters");
    EXPECT_NE(ask(wrong).message.find("must describe an object"), std::string::npos);
  }
  EXPECT_EQ(ask("{}").status, 0);
  EXPECT_EQ(ask(R"({"properties":{"a":{"type":"strin"}}})").param, "tools[1].function.parameters");
  EXPECT_TRUE(ask(R"({"properties":{"a":{"type":"strin"}}})")
                  .message.starts_with("tools[1].function.parameters: the schema at #/properties/a/type: "));
}

TEST(Ask, APromptForManyAnswersIsNotCopiedWithoutBound) {
  const std::string long_text(200000, 'x');
  EXPECT_EQ(error_of(Api::completions, "{\"prompt\":\"" + long_text + "\",\"n\":64}").param, "prompt");
  EXPECT_EQ(error_of(Api::completions, "{\"prompt\":\"" + long_text + "\"}").status, 0);
}

TEST(Ask, APromptThatIsScoredBecomesTheAnswersBeginning) {
  const auto tokens = testing::test_model().tokenizer().encode("abcd");
  const auto ask = [](int tokens_wanted) {
    return R"({"prompt":"abcd","echo":true,"logprobs":2,"max_tokens":)" + std::to_string(tokens_wanted) + "}";
  };
  const Request request = requests_of(Api::completions, ask(3))[0];
  EXPECT_EQ(request.prompt, std::vector<Token>(tokens.begin(), tokens.begin() + 1));
  EXPECT_EQ(request.forced, std::vector<Token>(tokens.begin() + 1, tokens.end()));
  EXPECT_EQ(request.sampling.max_tokens, static_cast<int>(tokens.size()) - 1 + 3);
  EXPECT_EQ(requests_of(Api::completions, ask(0))[0].sampling.max_tokens,
            static_cast<int>(tokens.size()) - 1);
  EXPECT_EQ(error_of(Api::completions, R"({"prompt":[5],"echo":true,"logprobs":2,"max_tokens":0})").param,
            "max_tokens");
}

TEST(Ask, WhatAUserTypesNeverBecomesAControlToken) {
  const Model& model = testing::test_model();
  const Token end = model.tokenizer().eos();
  const std::string text = model.tokenizer().piece(end);
  const auto count = [&](Api api, const std::string& body) {
    const auto prompt = requests_of(api, body)[0].prompt;
    return std::count(prompt.begin(), prompt.end(), end);
  };
  const auto plain = count(Api::chat_completions, R"({"messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(count(Api::chat_completions, R"({"messages":[{"role":"user","content":")" + text + R"("}]})"),
            plain);
  EXPECT_EQ(count(Api::completions, "{\"prompt\":\"a" + text + "\"}"), 0);
}

TEST(Ask, PartsOfTextAreJoinedAndDevelopersAreTheSystem) {
  const auto prompt = [](const std::string& messages) {
    return requests_of(Api::chat_completions, "{\"messages\":" + messages + "}")[0].prompt;
  };
  EXPECT_EQ(
      prompt(R"([{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"),
      prompt(R"([{"role":"system","content":"a\nb"}])"));
}

TEST(Ask, OllamasContextBoundsPromptAndAnswerTogether) {
  const auto ask = [](int context) {
    return R"({"prompt":"abcd","raw":true,"options":{"num_ctx":)" + std::to_string(context) + "}}";
  };
  const auto length = static_cast<int>(testing::test_model().tokenizer().encode("abcd").size());
  EXPECT_EQ(requests_of(Api::ollama_generate, ask(length + 3))[0].sampling.max_tokens, 3);
  EXPECT_EQ(error_of(Api::ollama_generate, ask(length)).param, "options.num_ctx");
}

TEST(Ask, ErrorsHaveEachApisOwnShape) {
  ApiError error;
  error.message = "no";
  error.param = "top_p";
  EXPECT_EQ(error_body(Api::completions, error),
            R"({"error":{"message":"no","type":"invalid_request_error","param":"top_p","code":null}})");
  EXPECT_EQ(error_body(Api::ollama_chat, error), R"({"error":"no"})");
}

// The document at /openapi.json and the code know the same fields.
TEST(Ask, EveryFieldOfTheDocumentIsKnown) {
  const Json document = Json::parse(openapi_document());
  const std::pair<Api, const char*> asks[] = {{Api::completions, "CompletionRequest"},
                                              {Api::chat_completions, "ChatRequest"},
                                              {Api::ollama_chat, "OllamaChatRequest"},
                                              {Api::ollama_generate, "OllamaGenerateRequest"}};
  for (const auto& [api, name] : asks) {
    const Json& properties = document["components"]["schemas"][name]["properties"];
    EXPECT_GT(properties.size(), 7u);
    for (const auto& [field, schema] : properties.items()) {
      Json body = Json::parse(body_of(api));
      body[field] = Json::parse("[[[\"x\"]]]");  // right for none
      EXPECT_EQ(error_of(api, body.dump()).message.find("not known"), std::string::npos)
          << name << " " << field;
    }
  }
}

}  // namespace
}  // namespace coppice::serve
