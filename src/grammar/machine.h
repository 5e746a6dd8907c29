// Walks a compiled grammar byte by byte. A state is everything the text so far may be: a set of places, each
// a position of a rule's automaton and a stack, what comes after that rule. Stacks are sets too: all callers
// of a rule at one point of the text share its walk (a graph-structured stack), so that a grammar with many
// readings needs no more places than it has positions for each point where a rule may have begun. A rule
// called at another one's end takes over that one's stack, so lists written by recursion do not grow it.
//
// States and stacks are kept once each and named by numbers; where a byte leads to from a state is found out
// once (as a lazily built deterministic automaton). Memory is bounded: see full().
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "grammar/compiled.h"
#include "grammar/interned.h"

namespace coppice::core::grammar {

using StateId = std::uint32_t;

inline constexpr StateId kDead = 0;              // no text of the grammar begins so
inline constexpr StateId kTooMany = 0xfffffffe;  // more readings at once than a machine looks at

class Machine {
 public:
  explicit Machine(std::shared_ptr<const Compiled> grammar);

  StateId start() const { return start_; }
  // kTooMany: the state there would have too many places.
  StateId step(StateId state, std::uint8_t byte) {
    if (state == kTooMany) return state;
    const StateId known = next_[at(state, byte)];
    return known != kUnknown ? known : find(state, byte);
  }
  StateId walk(StateId state, std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size() && state != kDead; ++i)
      state = step(state, static_cast<std::uint8_t>(bytes[i]));
    return state;
  }
  // The text so far is whole; and nothing can be added to it.
  bool may_end(StateId state) const { return state != kTooMany && may_end_[state] != 0; }
  bool must_end(StateId state) const { return may_end(state) && states_[state].size() == 1; }
  // The fewest bytes that make the text whole.
  std::uint32_t least(StateId state) const;

  // Much is remembered: a good time to forget all but one state, which gets the number that is returned.
  bool full() const {
    return states_.size() > kManyStates || states_.places() + stacks_.places() > kManyPlaces;
  }
  StateId forget_others(StateId state);
  // What was found out so far, in places looked at: to bound how long somebody searches.
  std::uint64_t work() const { return work_; }

 private:
  static constexpr StateId kUnknown = 0xffffffff;
  static constexpr std::uint32_t kEnd = 0xffffffff;  // as a place's position: the whole text may end here
  static constexpr std::size_t kMostPlaces = 4096;   // of a state or a stack
  static constexpr std::uint32_t kManyStates = 1u << 12;
  static constexpr std::size_t kManyPlaces = std::size_t{1} << 18;
  static constexpr std::uint32_t kMostStates = 1u << 15;
  static constexpr std::size_t kMostInAll = std::size_t{1} << 21;

  std::size_t at(StateId state, std::uint8_t byte) const {
    return std::size_t{state} * static_cast<std::size_t>(grammar_->classes()) +
           static_cast<std::size_t>(grammar_->byte_class(byte));
  }
  StateId find(StateId state, std::uint8_t byte);
  StateId close();
  bool reach(Place place);
  void note_calls(Place place);
  void enter_rules();
  StateId add_state();
  std::uint32_t add_stack(std::vector<Place>& places);

  std::shared_ptr<const Compiled> grammar_;
  StateId start_ = kDead;
  InternedPlaces states_, stacks_;
  std::vector<StateId> next_;          // [states, classes]
  std::vector<std::uint8_t> may_end_;  // [states]
  std::vector<std::uint32_t> least_;   // [stacks], bytes to the end of all that comes
  std::uint64_t work_ = 0;

  // Of one step.
  std::vector<Place> reached_;                                    // by the byte, and through ends of rules
  std::vector<Place> places_;                                     // of the new state
  std::vector<std::vector<Place>> callers_;                       // [rules]
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entered_;  // heap of (rank, rule), least on top
  struct Seen {
    Place place;
    std::uint32_t round = 0;
  };
  std::vector<Seen> seen_;  // open addressing
  std::uint32_t round_ = 0;
  bool too_many_ = false;
};

}  // namespace coppice::core::grammar
