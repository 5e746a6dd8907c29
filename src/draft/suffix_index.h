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
inline constexpr int kLongestMatch = 32;     // tokens compared
inline constexpr int kSuffixCandidates = 6;  // of one context, the weightiest

struct SuffixContext {
  float total = 0;  // weight of all continuations; 0: not seen
  int count = 0;
  Token token[kSuffixCandidates];
  float weight[kSuffixCandidates];  // descending
};

// Where the longest context that was seen was seen last.
struct SuffixMatch {
  int length = 0;          // tokens that agree, at most kLongestMatch; 0: none
  Token token = kNoToken;  // what followed there
};

struct SuffixSightings {
  int count = 0;
  int age = 0;  // tokens since the last one, 1: it is the newest; 0: none
};

class SuffixIndex {
 public:
  explicit SuffixIndex(int max_tokens);  // the only allocation
  ~SuffixIndex();
  void clear();
  void append(Token token);  // beyond max_tokens: ignored for the index
  // The contexts that end at the end of the appended tokens + `path` (guesses below). out: [kSuffixOrders].
  SuffixMatch contexts(std::span<const Token> path, SuffixContext* out) const;
  // Of a token by itself.
  SuffixSightings sightings(Token token) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice::core
