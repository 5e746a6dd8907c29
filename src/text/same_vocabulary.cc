#include <fmt/format.h>

#include <algorithm>

#include "text/show_token.h"
#include "text/vocabulary.h"

namespace coppice::core {

Status same_vocabulary(const Vocabulary& target, const Vocabulary& draft) {
  const std::size_t common = std::min(target.tokens.size(), draft.tokens.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (target.tokens[i] != draft.tokens[i]) {
      return fail(fmt::format(
          "the draft's vocabulary is not the target's: token {} is {} in the target and {} in the "
          "draft; a draft must have the target's tokens",
          i, show_token(target.tokens[i]), show_token(draft.tokens[i])));
    }
  }
  if (target.tokens.size() != draft.tokens.size()) {
    return fail(fmt::format(
        "the draft's vocabulary is not the target's: the target has {} tokens and the draft {}; a "
        "draft must have the target's tokens",
        target.tokens.size(), draft.tokens.size()));
  }
  return {};
}

}  // namespace coppice::core
