#include "grammar/matcher.h"

#include <algorithm>

#include "base/check.h"

namespace coppice::core::grammar {
namespace {

void set_bit(std::vector<std::uint32_t>& words, Token token) {
  words[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
}

}  // namespace

Matcher::Matcher(std::shared_ptr<const Compiled> grammar, std::shared_ptr<const TokenTrie> tokens, int vocab)
    : grammar_(std::move(grammar)),
      tokens_(std::move(tokens)),
      machine_(grammar_),
      words_((static_cast<std::size_t>(vocab) + 31) / 32),
      walk_(tokens_->deepest() + 1) {
  COPPICE_CHECK(vocab >= tokens_->vocab());
  masks_.reserve(kMasks);
  start({});
}

void Matcher::start(const AnswerStart& start) {
  start_ = start;
  length_ = start.index;
  state_ = {machine_.start(), start.drops_space};
}

State Matcher::next(State state, Token token) {
  std::string_view bytes = tokens_->bytes(token);
  if (bytes.empty() || tokens_->ends_text(token)) return {kDead, false};
  if (state.begins && bytes[0] == ' ') bytes.remove_prefix(1);
  return {machine_.walk(state.id, bytes), false};
}

State Matcher::at(std::span<const Token> committed, std::span<const Token> path) {
  if (committed.size() < length_) start(start_);
  for (; length_ < committed.size(); ++length_) {
    state_ = next(state_, committed[length_]);
    if (!machine_.full()) continue;
    state_.id = machine_.forget_others(state_.id);
    drop_masks();
  }
  State state = state_;
  for (const Token token : path) state = next(state, token);
  return state;
}

bool Matcher::allows(State state, Token token) {
  if (too_many(state)) return false;
  if (tokens_->ends_text(token)) return machine_.may_end(state.id);
  const State after = next(state, token);
  return after.id != kDead && !too_many(after);
}

void Matcher::drop_masks() {
  masks_.clear();
  oldest_ = 0;
}

void Matcher::forget() {
  machine_ = Machine(grammar_);
  drop_masks();
  start(start_);
}

std::span<const std::uint32_t> Matcher::mask(State state) {
  if (too_many(state)) return {};
  for (const Mask& mask : masks_)
    if (mask.state == state) return mask.words;
  const bool room = masks_.size() < kMasks;
  if (room) masks_.push_back({state, std::vector<std::uint32_t>(words_)});
  Mask& mask = room ? masks_.back() : masks_[oldest_++ % kMasks];
  mask.state = state;
  if (fill(state, mask.words)) return mask.words;
  mask.state = {kTooMany, true};
  return {};
}

// The vocabulary's tree is gone through as it lies there; what begins with bytes that lead nowhere is left
// out.
bool Matcher::fill(State state, std::vector<std::uint32_t>& words) {
  std::fill(words.begin(), words.end(), 0u);
  if (machine_.may_end(state.id))
    for (const Token token : tokens_->ends())
      if (static_cast<std::size_t>(token) < 32 * words_) set_bit(words, token);
  const std::uint64_t work = machine_.work();
  walk_[0] = state.id;
  for (std::uint32_t n = 1; n < tokens_->nodes();) {
    const TokenTrie::Node& node = tokens_->node(n);
    const StateId before = walk_[node.depth - 1u];
    const bool dropped = state.begins && node.depth == 1 && node.byte == ' ';
    const StateId after = dropped ? before : machine_.step(before, node.byte);
    if (after == kTooMany || machine_.work() - work > kMostWork) return false;
    if (after == kDead) {
      n = node.beyond;
      continue;
    }
    walk_[node.depth] = after;
    for (const Token token : tokens_->tokens_at(n)) set_bit(words, token);
    ++n;
  }
  return true;
}

}  // namespace coppice::core::grammar
