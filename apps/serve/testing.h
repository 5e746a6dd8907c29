// What the tests here share: a small random model, and answers written from texts that a test gives instead
// of an engine.
#pragma once

#include <coppice/coppice.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/os.h"
#include "json_body.h"
#include "model/random_model.h"

namespace coppice::serve::testing {

// With a chat template of one's own, or with ChatML, which knows no tools.
inline Model load_model(const std::string& program = "") {
  const std::string path =
      ::testing::TempDir() + "coppice_serve_test_" + std::to_string(::getpid()) + ".gguf";
  const auto bytes = *core::random_model({});
  EXPECT_TRUE(core::write_file(path, [&](const core::Append& append) { return append(bytes); }));
  ModelOptions options;
  options.threads = 1;
  options.chat_template.program = program;
  auto model = Model::load(path, options);
  EXPECT_TRUE(model) << model.error().message;
  std::remove(path.c_str());
  return *model;
}

inline const Model& test_model() {
  static const Model kModel = load_model();
  return kModel;
}

// The error a body gets; status 0 if it gets none.
inline ApiError error_of(Api api, const std::string& body, const Model& model = test_model()) {
  ApiError none;
  none.status = 0;
  const auto ask = Ask::parse(api, body);
  if (!ask) return ask.error();
  const auto requests = (*ask)->requests(model);
  return requests ? none : requests.error();
}

inline std::vector<Request> requests_of(Api api, const std::string& body, const Model& model = test_model()) {
  const auto ask = Ask::parse(api, body);
  EXPECT_TRUE(ask) << ask.error().message;
  if (!ask) return {};
  auto requests = (*ask)->requests(model);
  EXPECT_TRUE(requests) << requests.error().message;
  return requests ? *requests : std::vector<Request>();
}

// A request's answer in the parts in which an engine brings it.
struct Played {
  std::vector<std::string> parts;
  StopReason stop = StopReason::end_of_text;
  std::string held = {};  // text that comes with the end only
};

// All bytes of the answer; one Played for each request.
inline std::string play(Api api, const std::string& body, const std::vector<Played>& answers,
                        const Model& model = test_model()) {
  const auto ask = Ask::parse(api, body);
  EXPECT_TRUE(ask) << ask.error().message;
  if (!ask) return "";
  AnswerContext context;
  context.id = "id";
  context.model = "tiny";
  context.sources = {"lookup", "ngram"};
  context.prompt_tokens.assign(answers.size(), 7);
  const auto writer = AnswerWriter::make(**ask, model, context);
  std::string out = writer->begin();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Generation generation;
    const auto draw = [&](const std::string& text) {
      std::vector<EmittedToken> tokens;
      for (const Token token : model.tokenizer().encode(text, true, false)) {
        EmittedToken emitted;
        emitted.token = token;
        emitted.source = tokens.empty() ? kFromTarget : 0;
        emitted.logprob = -0.5F;
        emitted.top = {{token, -0.5F}, {65, -2.0F}};
        tokens.push_back(emitted);
      }
      generation.tokens.insert(generation.tokens.end(), tokens.begin(), tokens.end());
      generation.text += text;
      return tokens;
    };
    const std::vector<std::string>& parts = answers[i].parts;
    for (const std::string& part : parts) {
      std::vector<EmittedToken> tokens = draw(part);
      if (&part == &parts.back())  // the tokens of text that is held are drawn with the last pass
        for (EmittedToken& token : draw(answers[i].held)) tokens.push_back(std::move(token));
      TreeTrace tree;
      tree.nodes = {{72, -1, 1.0F, 0, true}, {73, 0, 0.5F, 3, false}};
      tree.drawn = 72;
      Event event;
      event.tokens = tokens;
      event.text = part;
      event.tree = &tree;
      out += writer->event(static_cast<int>(i), event);
    }
    generation.stop = answers[i].stop;
    generation.stats.tokens = generation.tokens.size();
    generation.stats.reused_tokens = 3;
    out += writer->done(static_cast<int>(i), std::move(generation));
  }
  return out + writer->finish();
}

// The objects of a stream of server-sent events, without the closing [DONE], which must be there.
inline std::vector<Json> events_of(const std::string& stream) {
  std::vector<Json> out;
  std::size_t at = 0;
  bool done = false;
  while (at < stream.size()) {
    EXPECT_EQ(stream.substr(at, 6), "data: ");
    const std::size_t end = stream.find("\n\n", at);
    if (end == std::string::npos) break;
    const std::string data = stream.substr(at + 6, end - at - 6);
    at = end + 2;
    EXPECT_FALSE(done) << data;
    done = data == "[DONE]";
    if (!done) out.push_back(Json::parse(data));
  }
  EXPECT_TRUE(done);
  return out;
}

inline std::vector<Json> lines_of(const std::string& stream) {
  std::vector<Json> out;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find('\n', at);
    out.push_back(Json::parse(stream.substr(at, end - at)));
    at = end == std::string::npos ? stream.size() : end + 1;
  }
  return out;
}

}  // namespace coppice::serve::testing
