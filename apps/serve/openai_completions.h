// The writer of /v1/completions.
#pragma once

#include <string>
#include <vector>

#include "openai_writer.h"

namespace coppice::serve {

// A prompt that is scored: its tokens but the first are the answer's first, so that they have
// log-probabilities.
struct Scored {
  Token first = kNoToken;
  int forced = 0;  // tokens of the answer that are the prompt's
};

class CompletionWriter : public OpenAiWriter {
 public:
  // `echoes`: text before each prompt's answers; empty: none. `scored`: the same for prompts that are; else
  // empty.
  CompletionWriter(const OpenAiStyle& style, const Model& model, AnswerContext context,
                   const std::vector<std::string>& echoes, const std::vector<Scored>& scored);

 private:
  struct Choice {
    std::string text;
    std::size_t characters = 0;  // of it and of what was streamed: offsets of tokens
    Json logprobs;
  };

  std::vector<Json> opening(int index) override;
  std::vector<Json> add(int index, std::string_view text, std::span<const ShownToken> tokens,
                        bool last) override;
  Json nothing(int index) override;
  Json whole(int index) override;
  int forced(int index) const override;

  // Adds to OpenAI's four lists in `out`, which may be null still.
  void add_logprobs(Choice& choice, std::span<const ShownToken> tokens, Json& out) const;

  std::vector<Scored> scored_;
  std::vector<Choice> choices_;
};

}  // namespace coppice::serve
