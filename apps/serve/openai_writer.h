// What the answers of OpenAI's two routes have in common: chunks and their end, usage, statistics, the trace.
#pragma once

#include <string>
#include <vector>

#include "answer_tokens.h"

namespace coppice::serve {

struct OpenAiStyle {
  bool stream = false, include_usage = false;
  bool logprobs = false, trace = false, stats = false;
  bool show_special = false;
  int n = 1;  // answers to each prompt
  const char *object = "", *chunk_object = "";
};

class OpenAiWriter : public AnswerWriter {
 public:
  OpenAiWriter(const OpenAiStyle& style, const Model& model, AnswerContext context);

  std::string begin() override;
  std::string event(int index, const Event& event) override;
  std::string done(int index, Generation generation) override;
  std::string finish() override;
  std::string fail(const ApiError& error) override;
  const char* content_type() const override;

 protected:
  // Everything below speaks of one element of `choices`, without its index and without how it ended.
  virtual std::vector<Json> opening(int index) = 0;  // chunks before the first token
  // What `text` and the tokens that are now shown add. With `last` nothing comes after it.
  virtual std::vector<Json> add(int index, std::string_view text, std::span<const ShownToken> tokens,
                                bool last) = 0;
  virtual Json nothing(int index) = 0;                    // a chunk that adds nothing
  virtual Json whole(int index) = 0;                      // where nothing was streamed
  virtual bool called_tools(int) const { return false; }  // and the answer ends for that
  virtual int forced(int) const { return 0; }  // tokens at the answer's beginning that are the prompt's

  const OpenAiStyle& style() const { return style_; }
  const AnswerContext& context() const { return context_; }
  const Tokenizer& tokenizer() const { return model_.tokenizer(); }

 private:
  struct Progress {
    AnswerTokens tokens;
    std::size_t bytes = 0;  // of its text, so far
    StopReason stop = StopReason::none;
    Stats stats;
    std::size_t drawn = 0;
  };

  std::vector<ShownToken> follow(Progress& progress, const Event& event);
  std::string chunks(int index, std::vector<Json> parts, Json trace);
  Json ended(int index, Json choice) const;
  Json envelope(const char* object, Json choices) const;
  Json usage() const;
  Json statistics() const;

  OpenAiStyle style_;
  Model model_;
  AnswerContext context_;
  std::vector<Progress> progress_;
  std::vector<Json> traces_;  // where nothing is streamed
  std::size_t finished_ = 0;
};

}  // namespace coppice::serve
