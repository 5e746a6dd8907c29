// A grammar's part in a draw: the filters first, then the mask; where the mask would leave nothing of what
// the filters do, the mask first. So what was likely enough to be drawn anyway is drawn with the same noise
// from the same candidates, and there is always something to draw.
//
// Without filters both orders are one: the mask goes into the logits, whose groups are then looked at as
// ever.
#include <algorithm>

#include "base/check.h"
#include "grammar/grammar_impl.h"
#include "sample/sampler.h"
#include "sample/survivors.h"

namespace coppice::core {

Status Sampler::constrain(std::shared_ptr<const grammar::TokenTrie> tokens,
                          const grammar::AnswerStart& start) {
  COPPICE_CHECK(options_.grammar.has_value() && tokens != nullptr);
  if (tokens->ends().empty())
    return fail(
        "grammar: this model has no token that ends a text, so no answer could end where the grammar does");
  matcher_ = std::make_shared<grammar::Matcher>(options_.grammar->impl().compiled, std::move(tokens), vocab_);
  matcher_->start(start);
  return {};
}

Allowed Sampler::allowed(const PathState& state) const {
  if (!options_.grammar) return {};
  COPPICE_CHECK(matcher_ != nullptr);  // constrain() comes before the first draw
  return {matcher_.get(), matcher_->at(state.committed, state.path)};
}

bool Sampler::filters() const {
  const Sampling& o = options_;
  return o.temperature > 0 && (o.top_k > 0 || o.typical_p < 1 || o.top_p < 1 || o.min_p > 0);
}

std::optional<Survivors> Sampler::allowed_survivors(const PathState& state, Scratch& scratch,
                                                    bool again) const {
  COPPICE_CHECK(matcher_ != nullptr);
  auto mask = matcher_->mask(matcher_->at(state.committed, state.path));
  if (mask.empty() && again) {
    matcher_->forget();
    mask = matcher_->mask(matcher_->at(state.committed, state.path));
  }
  if (mask.empty()) return std::nullopt;
  if (filters()) {
    Survivors survivors(scratch, scratch.argmax(), options_.temperature);
    survivors.apply(options_);
    survivors.restrict_to(mask);
    if (survivors.top() != kNoToken) return survivors;
  }
  scratch.keep(mask);
  const int argmax = scratch.argmax();
  if (argmax < 0) return std::nullopt;
  scratch.make(argmax / kLogitGroup);
  Survivors survivors(scratch, argmax, tempered());
  if (options_.temperature > 0) survivors.apply(options_);
  return survivors;
}

tl::unexpected<Error> Sampler::why_nothing(const PathState& state) const {
  if (!options_.grammar)
    return fail("no token can be drawn: every logit is banned or not a finite number; ban fewer tokens");
  if (matcher_->mask(matcher_->at(state.committed, state.path)).empty())
    return fail(
        "no token can be drawn: the grammar can be read in too many ways at once here; make it less "
        "ambiguous");
  return fail(
      "no token can be drawn: of the tokens that the grammar allows here, each is banned or its logit is not "
      "a "
      "finite number; ban fewer tokens");
}

}  // namespace coppice::core
