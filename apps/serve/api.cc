#include "api.h"

#include "json_fields.h"
#include "ollama_ask.h"
#include "openai_ask.h"

namespace coppice::serve {

ApiResult<std::unique_ptr<Ask>> Ask::parse(Api api, std::string_view body) {
  const auto json = parse_body(body);
  if (!json) return tl::unexpected(json.error());
  switch (api) {
    case Api::chat_completions:
      return parse_chat(*json);
    case Api::completions:
      return parse_completions(*json);
    case Api::ollama_chat:
      return parse_ollama(true, *json);
    case Api::ollama_generate:
      return parse_ollama(false, *json);
  }
  return tl::unexpected(invalid("", "no such API"));
}

std::unique_ptr<AnswerWriter> AnswerWriter::make(const Ask& ask, const Model& model, AnswerContext context) {
  return ask.writer(model, std::move(context));
}

std::string error_body(Api api, const ApiError& error) {
  if (api == Api::ollama_chat || api == Api::ollama_generate) return dump({{"error", error.message}});
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return dump({{"error",
                {{"message", error.message},
                 {"type", error.type},
                 {"param", text_or_null(error.param)},
                 {"code", text_or_null(error.code)}}}});
}

}  // namespace coppice::serve
