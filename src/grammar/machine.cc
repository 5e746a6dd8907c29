#include "grammar/machine.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/check.h"

namespace coppice::core::grammar {

Machine::Machine(std::shared_ptr<const Compiled> grammar)
    : grammar_(std::move(grammar)), callers_(grammar_->rules()), seen_(4 * kMostPlaces) {
  least_.push_back(0);
  add_state();  // the dead one: no places
  // The root's caller is the end of the text.
  callers_[grammar_->root()].push_back({kEnd, 0});
  entered_.push_back({grammar_->rank(grammar_->root()), grammar_->root()});
  enter_rules();
  if (grammar_->root_may_be_empty()) places_.push_back({kEnd, 0});
  start_ = too_many_ ? kTooMany : add_state();
}

StateId Machine::find(StateId state, std::uint8_t byte) {
  too_many_ = false;
  reached_.clear();
  ++round_;
  for (const Place& place : states_[state]) {
    if (place.position == kEnd) continue;
    for (const ByteEdge& edge : grammar_->bytes(place.position))
      if (edge.first <= byte && byte <= edge.last) reach({edge.to, place.stack});
    ++work_;
  }
  const StateId found = close();
  // What is too much is not remembered: there may be room after forget_others().
  if (found != kTooMany) next_[at(state, byte)] = found;
  return found;
}

// Once each. False: too many.
bool Machine::reach(Place place) {
  const std::uint64_t key = (std::uint64_t{place.position} << 32 | place.stack) * 0x9e3779b97f4a7c15u;
  std::size_t at = static_cast<std::size_t>(key >> 40) & (seen_.size() - 1);
  for (; seen_[at].round == round_; at = (at + 1) & (seen_.size() - 1))
    if (seen_[at].place == place) return true;
  if (reached_.size() == kMostPlaces) {
    too_many_ = true;
    return false;
  }
  seen_[at] = {place, round_};
  reached_.push_back(place);
  return true;
}

// Ends of rules lead back to their callers, calls lead into rules.
StateId Machine::close() {
  places_.clear();
  for (std::size_t i = 0; i < reached_.size() && !too_many_; ++i) {
    const Place place = reached_[i];
    ++work_;
    if (place.position == kEnd) {
      places_.push_back(place);
      continue;
    }
    if (!grammar_->final(place.position)) continue;
    for (const Place& caller : stacks_[place.stack])
      if (!reach(caller)) break;
  }
  for (const Place& place : reached_) {
    if (place.position == kEnd || too_many_) continue;
    if (!grammar_->bytes(place.position).empty()) places_.push_back(place);
    note_calls(place);
  }
  enter_rules();
  return too_many_ ? kTooMany : add_state();
}

void Machine::note_calls(Place place) {
  for (const CallEdge& call : grammar_->calls(place.position)) {
    std::vector<Place>& callers = callers_[call.rule];
    if (callers.empty()) {
      entered_.push_back({grammar_->rank(call.rule), call.rule});
      std::push_heap(entered_.begin(), entered_.end(), std::greater<>());
    }
    if (grammar_->only_final(call.to)) {
      const auto stack = stacks_[place.stack];
      callers.insert(callers.end(), stack.begin(), stack.end());
      work_ += stack.size();
    } else {
      callers.push_back({call.to, place.stack});
      ++work_;
    }
    if (callers.size() > 4 * kMostPlaces) {
      std::sort(callers.begin(), callers.end());
      callers.erase(std::unique(callers.begin(), callers.end()), callers.end());
      too_many_ = too_many_ || callers.size() > kMostPlaces;
    }
  }
}

// Callers come before those they call, so all callers of a rule are known when it is its turn.
void Machine::enter_rules() {
  while (!entered_.empty()) {
    std::pop_heap(entered_.begin(), entered_.end(), std::greater<>());
    const std::uint32_t rule = entered_.back().second;
    entered_.pop_back();
    if (!too_many_) {
      const Place start{grammar_->start(rule), add_stack(callers_[rule])};
      if (!grammar_->bytes(start.position).empty()) places_.push_back(start);
      note_calls(start);
    }
    callers_[rule].clear();
  }
}

std::uint32_t Machine::add_stack(std::vector<Place>& places) {
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  if (places.size() > kMostPlaces || stacks_.places() + places.size() > kMostInAll) {
    too_many_ = true;
    return 0;
  }
  const std::uint32_t stack = stacks_.add(places);
  if (stack == least_.size()) {
    std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
    for (const Place& place : places) {
      const std::uint32_t here = place.position == kEnd ? 0 : grammar_->least(place.position);
      // Both are at most 2^30, and a sum that would pass it stays there.
      least = std::min(least, std::min(here + least_[place.stack], 1u << 30));
    }
    least_.push_back(least);
  }
  return stack;
}

StateId Machine::add_state() {
  std::sort(places_.begin(), places_.end());
  places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
  if (places_.size() > kMostPlaces || states_.size() >= kMostStates ||
      states_.places() + places_.size() > kMostInAll)
    return kTooMany;
  const StateId state = states_.add(places_);
  if (state == may_end_.size()) {
    may_end_.push_back(!places_.empty() && places_.back().position == kEnd ? 1 : 0);
    next_.resize(next_.size() + static_cast<std::size_t>(grammar_->classes()), kUnknown);
    if (state == kDead) std::fill(next_.begin(), next_.end(), kDead);
  }
  return state;
}

std::uint32_t Machine::least(StateId state) const {
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  if (state == kTooMany) return least;
  for (const Place& place : states_[state]) {
    const std::uint32_t here = place.position == kEnd ? 0 : grammar_->least(place.position);
    least = std::min(least, std::min(here + least_[place.stack], 1u << 30));
  }
  return least;
}

// A stack's number is above those of the stacks in it: what is needed is found on the way down, and kept on
// the way up.
StateId Machine::forget_others(StateId state) {
  if (state == kTooMany || state == kDead) return state;
  const InternedPlaces old = stacks_;
  std::vector<Place> kept(states_[state].begin(), states_[state].end());
  std::vector<std::uint32_t> renamed(old.size(), 0);  // 1 at first: needed
  for (const Place& place : kept) renamed[place.stack] = 1;
  for (std::uint32_t s = old.size(); s-- > 1;)
    if (renamed[s] != 0)
      for (const Place& place : old[s]) renamed[place.stack] = 1;
  const std::uint64_t work = work_;
  Machine fresh(grammar_);
  *this = std::move(fresh);
  work_ = work;
  std::vector<Place> places;
  const auto rename = [&](Place& place) { place.stack = renamed[place.stack]; };
  renamed[0] = 0;
  for (std::uint32_t s = 1; s < old.size(); ++s) {
    if (renamed[s] == 0) continue;
    places.assign(old[s].begin(), old[s].end());
    for (Place& place : places) rename(place);
    renamed[s] = add_stack(places);
  }
  places_ = std::move(kept);
  for (Place& place : places_) rename(place);
  const StateId again = add_state();
  COPPICE_CHECK(again != kTooMany);
  return again;
}

}  // namespace coppice::core::grammar
