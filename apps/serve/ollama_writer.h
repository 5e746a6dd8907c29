// The answers of Ollama's two routes: one JSON object a line, or one in all.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "answer_tokens.h"
#include "openai_chat.h"

namespace coppice::serve {

struct OllamaStyle {
  bool stream = true, chats = true;
  bool trace = false, stats = false;
};

class OllamaWriter : public AnswerWriter {
 public:
  OllamaWriter(const OllamaStyle& style, const Model& model, AnswerContext context, const CallStyle& calls);

  std::string begin() override { return ""; }
  std::string event(int index, const Event& event) override;
  std::string done(int index, Generation generation) override;
  std::string finish() override;
  std::string fail(const ApiError& error) override;
  const char* content_type() const override;

 private:
  std::string add(std::string_view text, Json trace, bool last);
  Json line(std::string content) const;
  Json calls_json() const;
  void add_numbers(Json& line) const;

  OllamaStyle style_;
  Model model_;
  AnswerContext context_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  AnswerTokens tokens_;
  std::optional<ToolCallReader> reader_;
  std::size_t bytes_ = 0;  // of the text, so far
  std::string content_;    // where nothing is streamed
  std::vector<ToolCall> calls_;
  std::vector<Json> traces_;
  StopReason stop_ = StopReason::none;
  Stats stats_;
};

}  // namespace coppice::serve
