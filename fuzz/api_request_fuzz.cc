// Bodies of the server's four APIs: the first byte says which, the rest is the body. Each is refused with a
// message and 400, or becomes requests, and an answer to it is written, streamed or not, whose JSON is JSON.
#include <coppice/coppice.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "api.h"
#include "base/check.h"
#include "base/os.h"
#include "json_body.h"
#include "model/random_model.h"

namespace coppice::serve {
namespace {

Model load() {
  const std::string path = "api_request_fuzz_" + std::to_string(::getpid()) + ".gguf";
  const auto bytes = core::random_model({});
  COPPICE_CHECK(bytes.has_value());
  COPPICE_CHECK(
      core::write_file(path, [&](const core::Append& append) { return append(*bytes); }).has_value());
  ModelOptions options;
  options.threads = 1;
  auto model = Model::load(path, options);
  COPPICE_CHECK(model.has_value());
  std::remove(path.c_str());
  return *model;
}

void check_error(Api api, const ApiError& error) {
  COPPICE_CHECK(error.status == 400 && !error.message.empty());
  COPPICE_CHECK(parse_bounded(error_body(api, error)).has_value());
}

// The body itself is what the model says: it may look like a call of a tool.
void answer(const Ask& ask, const Model& model, std::size_t requests, std::string_view said) {
  AnswerContext context;
  context.prompt_tokens.assign(requests, 1);
  context.last_prompt_tokens.assign(requests, 0);
  const auto writer = AnswerWriter::make(ask, model, context);
  std::string out = writer->begin();
  std::vector<EmittedToken> tokens;
  for (const Token token : model.tokenizer().encode(said.substr(0, 300), true, false)) {
    tokens.emplace_back().token = token;
    if (model.tokenizer().ends_text(token)) break;
  }
  for (std::size_t i = 0; i < requests; ++i) {
    TokenTexts texts(model.tokenizer(), false, 0);
    Generation generation;
    generation.tokens = tokens;
    for (std::size_t at = 0; at < tokens.size(); at += 3) {
      Event event;
      event.tokens =
          std::span<const EmittedToken>(tokens).subspan(at, std::min<std::size_t>(3, tokens.size() - at));
      std::string text;
      for (const EmittedToken& token : event.tokens) text += texts.next(token.token).text;
      generation.text += text;
      event.text = text;
      out += writer->event(static_cast<int>(i), event);
    }
    generation.text += texts.finish();
    generation.stop = StopReason::end_of_text;
    out += writer->done(static_cast<int>(i), std::move(generation));
  }
  out += writer->finish();
  if (!ask.stream) COPPICE_CHECK(nlohmann::ordered_json::parse(out, nullptr, false).is_object());
}

}  // namespace
}  // namespace coppice::serve

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace coppice::serve;
  static const coppice::Model kModel = load();
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 5 == 4) {
    const auto tokens = tokenize(body, kModel);
    if (!tokens) check_error(Api::completions, tokens.error());
    return 0;
  }
  const auto api = static_cast<Api>(data[0] % 5);
  const auto ask = Ask::parse(api, body);
  if (!ask) {
    check_error(api, ask.error());
    return 0;
  }
  const auto requests = (*ask)->requests(kModel);
  if (!requests) {
    check_error(api, requests.error());
    return 0;
  }
  COPPICE_CHECK(!requests->empty());
  answer(**ask, kModel, std::min<std::size_t>(requests->size(), 4), body);
  return 0;
}
