#include <fmt/format.h>

#include <algorithm>

#include "text/show_token.h"
#include "text/vocabulary.h"

namespace coppice::core {

std::uint64_t vocabulary_hash(std::span<const std::string> tokens) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto eat = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const std::string& token : tokens) {
    for (const char c : token) eat(static_cast<unsigned char>(c));
    eat(0xff);  // no spelling has this byte: where one token ends counts
  }
  return hash;
}

Status same_vocabulary(const Vocabulary& target, const Vocabulary& draft) {
  if (draft.hash) {
    const std::uint64_t wanted = vocabulary_hash(target.tokens);
    if (*draft.hash == wanted) return {};
    return fail(
        fmt::format("the draft's vocabulary is not the target's: it was made for one with the hash {:016x}, "
                    "and the target's "
                    "has {:016x}; a draft must have the target's tokens",
                    *draft.hash, wanted));
  }
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
