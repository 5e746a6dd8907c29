// Which tokens an answer's text is made of: each comes out once its text has been shown whole, so that what
// is said about tokens (log-probabilities, who guessed them) stands beside their text and never runs ahead of
// it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "json_body.h"

namespace coppice::serve {

struct ShownToken {
  EmittedToken emitted;
  std::string bytes;      // the token's own; of a control token its name
  std::string text;       // what it added: whole characters, nothing behind the end of the answer
  std::size_t begin = 0;  // bytes of the answer before it
};

class AnswerTokens {
 public:
  // `after`: the prompt's last token.
  AnswerTokens(const Tokenizer& tokenizer, bool show_special, Token after);

  void drawn(std::span<const EmittedToken> tokens);
  // The answer's first `bytes` have been shown.
  std::vector<ShownToken> shown(std::size_t bytes);
  // This is the whole answer; tokens that are not part of it, as those of a stop string, never come out.
  std::vector<ShownToken> finish(const std::string& answer);

 private:
  std::vector<ShownToken> take(std::size_t count);

  const Tokenizer* tokenizer_;
  TokenTexts texts_;
  std::size_t begin_ = 0;
  std::deque<ShownToken> waiting_;
};

// {"token", "logprob", "bytes", "top_logprobs"}: a token as OpenAI's chat API has it.
Json chat_logprob(const ShownToken& token, const Tokenizer& tokenizer);
// Least that is said of a token that cannot come; JSON has no infinity.
float finite_logprob(float logprob);

// `coppice` of a chunk: tokens and the tree of a pass; `tree` may be null.
Json trace_json(std::span<const ShownToken> tokens, const TreeTrace* tree, const Tokenizer& tokenizer,
                std::span<const std::string> sources);
// `speculation` of an answer.
Json speculation_json(const Stats& stats, const AnswerContext& context);

}  // namespace coppice::serve
