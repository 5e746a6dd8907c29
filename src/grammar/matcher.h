// One answer's walk through its grammar, token by token, and which tokens may come next. Remembers what it
// found out, so it is for one thread at a time; nothing it says depends on what it was asked before.
#pragma once

#include <coppice/token.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/machine.h"
#include "grammar/token_trie.h"

namespace coppice::core::grammar {

// Where an answer stands: a value, valid until the matcher's next at().
struct State {
  StateId id = kDead;
  bool begins = false;  // nothing was written yet, and a first space would not become part of the text
  friend bool operator==(const State&, const State&) = default;
};

struct AnswerStart {
  std::size_t index = 0;     // tokens before the answer
  bool drops_space = false;  // decoding takes away a space that the answer's first token begins with
};

class Matcher {
 public:
  // `vocab`: of the model, at least as many as the tokens have bytes.
  Matcher(std::shared_ptr<const Compiled> grammar, std::shared_ptr<const TokenTrie> tokens, int vocab);

  void start(const AnswerStart& start);

  // After these tokens, prompt included. Cheap where `committed` grows from call to call.
  State at(std::span<const Token> committed, std::span<const Token> path);
  State next(State state, Token token);

  bool allows(State state, Token token);
  bool may_end(State state) const { return machine_.may_end(state.id); }
  // Bit t % 32 of word t / 32: token t is allowed. [ceil(vocab / 32)], valid until the next call. Empty: the
  // grammar can be read in too many ways here (too_many()).
  std::span<const std::uint32_t> mask(State state);
  static bool too_many(State state) { return state.id == kTooMany; }
  // The fewest bytes that make the text whole.
  std::uint32_t least(State state) const { return machine_.least(state.id); }

  // Forgets all that was found out: what failed for want of room may be possible then.
  void forget();

 private:
  static constexpr std::size_t kMasks = 128;  // kept, the oldest goes first
  // Places looked at for one mask: far above what any sane grammar needs, a fraction of a second.
  static constexpr std::uint64_t kMostWork = std::uint64_t{1} << 25;

  struct Mask {
    State state;
    std::vector<std::uint32_t> words;
  };
  bool fill(State state, std::vector<std::uint32_t>& words);
  void drop_masks();

  std::shared_ptr<const Compiled> grammar_;
  std::shared_ptr<const TokenTrie> tokens_;
  Machine machine_;
  std::size_t words_;
  AnswerStart start_;
  std::size_t length_ = 0;  // of what state_ is after
  State state_;
  std::vector<StateId> walk_;  // [deepest token + 1]
  std::vector<Mask> masks_;
  std::size_t oldest_ = 0;
};

}  // namespace coppice::core::grammar
