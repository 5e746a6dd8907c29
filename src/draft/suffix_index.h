// What followed when the last tokens were seen before, in this request: weights of continuations for context
// lengths 1, 2, 3, 4, 6, 8 and 12 over prompt and output, recent sightings weighing more (each new sighting
// of a context multiplies the older weights by a decay). Append only; memory is allocated once, for
// max_tokens.
#pragma once

#include <coppice/token.h>

#include <memory>
#include <span>

namespace coppice::core {

inline constexpr int kSuffixLengths[] = {1, 2, 3, 4, 6, 8, 12};
inline constexpr int kSuffixOrders = 7;
inline constexpr int kSuffixCandidates = 6;  // of one context, the weightiest

struct SuffixContext {
  float total = 0;  // weight of all continuations; 0: not seen
  int count = 0;
  Token token[kSuffixCandidates];
  float weight[kSuffixCandidates];  // descending
};

class SuffixIndex {
 public:
  explicit SuffixIndex(int max_tokens);  // the only allocation
  ~SuffixIndex();
  void clear();
  void append(Token token);  // beyond max_tokens: ignored for the index
  // The contexts that end at the end of the appended tokens + `path` (guesses below). out: [kSuffixOrders].
  void contexts(std::span<const Token> path, SuffixContext* out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice::core
