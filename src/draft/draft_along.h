// A draft model along a text that its target wrote: what each of its variants would have guessed at every
// token. All of it is known, so a variant reads it at once. (When a draft changes its width in the middle,
// what the earlier width computed stays, which is not seen here.)
#pragma once

#include <coppice/error.h>

#include <memory>
#include <span>
#include <vector>

#include "model/model.h"
#include "sample/sampler.h"

namespace coppice::core {

class DraftAlong {
 public:
  struct Guess {
    float chance = 0;    // the draft's own, of what it would guess first, noise left aside
    bool right = false;  // it is what the text has
  };

  // `positions`: of the longest text.
  static Result<std::unique_ptr<DraftAlong>> make(std::shared_ptr<const Model> draft, int positions,
                                                  ThreadPool& pool);

  // Of Model::variants(), after the tokens before each of text[start], ...: one guess a token. start is at
  // least 1. The sampler is the one that drew the text.
  Status guesses(int variant, std::span<const Token> text, std::size_t start, const Sampler& sampler,
                 std::vector<Guess>& out);

 private:
  explicit DraftAlong(std::unique_ptr<Context> context);

  std::unique_ptr<Context> context_;
  int sequence_ = 0;
  std::vector<Row> pass_;
  Sampler::Scratch scratch_;
};

}  // namespace coppice::core
