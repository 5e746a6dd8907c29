// The writer of /v1/chat/completions.
#pragma once

#include <coppice/tool_calls.h>

#include "openai_writer.h"
#include "tools.h"

namespace coppice::serve {

// How the answer's calls of tools are read; `family` null: there are none.
struct CallStyle {
  const ToolFamily* family = nullptr;
  Tools tools;
  ToolCallReader reader() const;  // of one answer; where there is a family
};

// Nine letters and digits: some templates want exactly that of a call's id.
std::string call_id();

class ChatWriter : public OpenAiWriter {
 public:
  ChatWriter(const OpenAiStyle& style, const Model& model, AnswerContext context, const CallStyle& calls);

 private:
  struct Choice {
    std::string content;
    std::vector<ToolCall> calls;
    Json logprobs;  // not in a chunk yet, or in none
    std::optional<ToolCallReader> reader;
  };

  std::vector<Json> opening(int index) override;
  std::vector<Json> add(int index, std::string_view text, std::span<const ShownToken> tokens,
                        bool last) override;
  Json nothing(int index) override;
  Json whole(int index) override;
  bool called_tools(int index) const override;

  std::vector<CallPiece> pieces(Choice& choice, std::string_view text, bool last) const;
  Json delta(Choice& choice, const CallPiece& piece);
  Json part(Choice& choice, Json delta);
  static Json take_logprobs(Choice& choice);

  bool named_;
  std::vector<Choice> choices_;
};

}  // namespace coppice::serve
