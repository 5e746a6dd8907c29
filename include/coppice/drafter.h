// A drafter of your own: it guesses what comes next, and the drafter expression names it beside the built-in
// ones, "mine | lookup". Whatever it says, the text stays the same (law 1): good guesses make it come sooner.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace coppice {

// Guesses may stand on one another: one answer can be a whole tree.
struct Guess {
  Token token = kNoToken;
  float chance = 0.5f;  // that it comes next, once the text has got there. (0, 1]; the mixer learns its worth
  int parent = -1;      // the guess it follows, an earlier one of this answer; -1: the place asked about
  bool last = false;    // where no guess follows it: do not ask there either
};

inline constexpr std::size_t kMostGuesses = 1024;  // of one answer
inline constexpr std::size_t kMostSiblings = 32;   // looked at in one place: the likeliest

// Where guesses are wanted. Views live for the call.
struct DraftPlace {
  std::uint64_t text = 0;            // as in begin()
  std::span<const Token> committed;  // prompt and answer so far, at least one token
  std::span<const Token> path;       // guesses behind them, anybody's: what comes after these?
};

// Life of a text: begin -> { propose ... accepted } once a pass of the model -> end. Several texts may be
// under way. One call at a time, but not always from the same thread, and the engine waits for each: a
// propose() that takes as long as a pass of the model is not worth it. What is asked once is remembered until
// accepted(). An error, or an exception, counts as no guess; it is said in SourceStats::problem.
class CustomDrafter {
 public:
  virtual ~CustomDrafter() = default;

  // `text` is no other text's number. The prompt's tokens, the last of them included.
  virtual void begin(std::uint64_t text, std::span<const Token> prompt) { (void)text, (void)prompt; }
  // Likely tokens at this place, in any order; empty: no idea. It is asked anew behind each guess that has
  // none behind it, unless that is `last`.
  virtual Result<std::vector<Guess>> propose(const DraftPlace& place) = 0;
  // What the model drew, guessed or not: `committed` has them from now on.
  virtual void accepted(std::uint64_t text, std::span<const Token> tokens) { (void)text, (void)tokens; }
  virtual void end(std::uint64_t text) { (void)text; }
};

struct NamedDrafter {
  std::string name;  // a word for the expression: a-z first, then a-z, 0-9, - and _; no built-in drafter's
  std::shared_ptr<CustomDrafter> drafter;
};

}  // namespace coppice
