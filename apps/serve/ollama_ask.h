// Ollama's /api/chat and /api/generate.
#pragma once

#include <optional>
#include <string>

#include "asked.h"
#include "chat_prompt.h"

namespace coppice::serve {

class OllamaAsk : public Ask {
 public:
  explicit OllamaAsk(bool chats) : chats_(chats) {}
  tl::expected<void, ApiError> read(const Json& body);

  ApiResult<std::vector<Request>> requests(const Model& model) const override;
  std::unique_ptr<AnswerWriter> writer(const Model& model, AnswerContext context) const override;

 private:
  void read_prompt(Fields& fields);
  ApiResult<ChatPrompt> prompt(const Model& model) const;

  bool chats_;
  Asked asked_;
  std::optional<int> context_;  // num_ctx: prompt and answer together
  Conversation conversation_;
  std::string prompt_, system_;  // of generate
  std::optional<std::string> suffix_;
  bool raw_ = false;
};

ApiResult<std::unique_ptr<Ask>> parse_ollama(bool chats, const Json& body);

}  // namespace coppice::serve
