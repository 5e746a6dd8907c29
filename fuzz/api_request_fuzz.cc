// Any bodies for the server's four APIs, of models of every family of calls of tools: refused with a message
// and 400, or made requests, and an answer to them is written, streamed or not, whose JSON is JSON. The first
// byte says which API and family. The body ends at a zero byte, and what stands behind it is what the model
// says; without one it says the body.
#include <coppice/coppice.h>
#include <coppice/tool_calls.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "api.h"
#include "base/check.h"
#include "base/os.h"
#include "json_body.h"
#include "model/random_model.h"

namespace coppice::serve {
namespace {

constexpr int kRoutes = 5;

// A template of this family: that of the model, if it has no marks.
Model load(const ToolFamily& family) {
  const std::string path = "api_request_fuzz_" + std::to_string(::getpid()) + ".gguf";
  const auto bytes = core::random_model({});
  COPPICE_CHECK(bytes.has_value());
  COPPICE_CHECK(
      core::write_file(path, [&](const core::Append& append) { return append(*bytes); }).has_value());
  ModelOptions options;
  options.threads = 1;
  if (!family.marks.empty())
    options.chat_template.program = "{# " + std::string(family.marks.front()) +
                                    " #}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                                    "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}"
                                    "<|im_end|>\n{% endfor %}";
  options.chat_template.name = "fuzz";
  auto model = Model::load(path, options);
  COPPICE_CHECK(model.has_value());
  std::remove(path.c_str());
  return *model;
}

const std::vector<Model>& models() {
  static const std::vector<Model> kModels = [] {
    std::vector<Model> all;
    for (const ToolFamily& family : tool_families()) all.push_back(load(family));
    return all;
  }();
  return kModels;
}

void check_error(Api api, const ApiError& error) {
  COPPICE_CHECK(error.status == 400 && !error.message.empty());
  COPPICE_CHECK(parse_bounded(error_body(api, error)).has_value());
}

// Each line of a stream, or the whole of an answer.
void check_json(std::string_view out, bool stream) {
  while (stream && !out.empty()) {
    const std::size_t end = std::min(out.find('\n'), out.size());
    std::string_view line = out.substr(0, end);
    out.remove_prefix(std::min(end + 1, out.size()));
    if (line.starts_with("data: ")) line.remove_prefix(6);
    if (line.empty() || line == "[DONE]") continue;
    COPPICE_CHECK(nlohmann::ordered_json::parse(line, nullptr, false).is_object());
  }
  if (!stream) COPPICE_CHECK(nlohmann::ordered_json::parse(out, nullptr, false).is_object());
}

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
  check_json(out, ask.stream);
}

}  // namespace
}  // namespace coppice::serve

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace coppice::serve;
  if (size == 0) return 0;
  const coppice::Model& model = models()[data[0] / kRoutes % models().size()];
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view body = rest.substr(0, rest.find('\0'));
  const std::string_view said = body.size() < rest.size() ? rest.substr(body.size() + 1) : body;
  if (data[0] % kRoutes == 4) {
    const auto tokens = tokenize(body, model);
    if (!tokens) check_error(Api::completions, tokens.error());
    return 0;
  }
  const auto api = static_cast<Api>(data[0] % kRoutes);
  const auto ask = Ask::parse(api, body);
  if (!ask) {
    check_error(api, ask.error());
    return 0;
  }
  const auto requests = (*ask)->requests(model);
  if (!requests) {
    check_error(api, requests.error());
    return 0;
  }
  COPPICE_CHECK(!requests->empty());
  answer(**ask, model, std::min<std::size_t>(requests->size(), 4), said);
  return 0;
}
