// Which cache sequence a request gets. A finished request leaves its sequence behind, idle; a new one whose
// prompt begins alike takes it over (same bits as computing it anew: law 2). Idle ones are dropped, oldest
// first, when room is needed.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/kv_cache.h"

namespace coppice::core {

class Sequences {
 public:
  explicit Sequences(KvCache& cache) : cache_(cache) {}

  struct Lease {
    int sequence = -1;
    int reused = 0;  // tokens already in the cache
  };
  // A sequence with room for `length` tokens whose first positions hold a prefix of `tokens` (never all of
  // them: the last token is the root). Fails when everything is in use.
  Result<Lease> take(std::span<const Token> tokens, int length);
  // Back, with the tokens whose positions are in the cache.
  void put(int sequence, std::span<const Token> tokens);
  void drop(int sequence) { cache_.close(sequence); }

 private:
  struct Idle {
    int sequence;
    std::uint64_t age;
    std::vector<Token> tokens;
  };
  bool evict_oldest();

  KvCache& cache_;
  std::vector<Idle> idle_;
  std::uint64_t clock_ = 0;
};

}  // namespace coppice::core
