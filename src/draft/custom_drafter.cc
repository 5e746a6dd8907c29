#include "draft/custom_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <optional>

#include "base/check.h"
#include "draft/said.h"

namespace coppice::core {
namespace {

static_assert(kMostSiblings <= kMostRanked);

std::uint64_t next_text() {
  static std::atomic<std::uint64_t> texts{0};
  return ++texts;
}

bool starts_with(std::span<const Token> path, std::span<const Token> start) {
  return path.size() >= start.size() && std::equal(start.begin(), start.end(), path.begin());
}

bool has_children(std::span<const Guess> guesses, int parent) {
  return std::any_of(guesses.begin(), guesses.end(), [&](const Guess& g) { return g.parent == parent; });
}

// The guess that `path` leads to, -1 for an empty path; nothing if it leads out of what was said.
std::optional<int> follow(std::span<const Guess> guesses, std::span<const Token> path) {
  int at = -1;
  for (const Token token : path) {
    const auto child = std::find_if(guesses.begin(), guesses.end(),
                                    [&](const Guess& g) { return g.parent == at && g.token == token; });
    if (child == guesses.end()) return std::nullopt;
    at = static_cast<int>(child - guesses.begin());
  }
  return at;
}

}  // namespace

CustomAdapter::CustomAdapter(NamedDrafter drafter, int sequences, int vocab)
    : drafter_(std::move(drafter)), vocab_(vocab), memories_(static_cast<std::size_t>(sequences)) {}

DrafterShape CustomAdapter::shape() const {
  return {.features = kSaidFeatures, .buckets = 1, .costly = false, .custom = true};
}

Status CustomAdapter::begin(int sequence, std::span<const Token> tokens, const Sampler&) {
  Memory& m = memory(sequence);
  m = {};
  m.text = next_text();
  tell(m, [&] { drafter_.drafter->begin(m.text, tokens); });
  return {};
}

void CustomAdapter::end(int sequence) {
  Memory& m = memory(sequence);
  tell(m, [&] { drafter_.drafter->end(m.text); });
  m.answers.clear();
}

void CustomAdapter::observe(int sequence, std::span<const Token> accepted) {
  Memory& m = memory(sequence);
  m.answers.clear();
  tell(m, [&] { drafter_.drafter->accepted(m.text, accepted); });
}

DrafterTrouble CustomAdapter::trouble(int sequence) const {
  const Memory& m = memories_[static_cast<std::size_t>(sequence)];
  return {m.failures, m.problem};
}

void CustomAdapter::predict(std::span<Query> queries) {
  for (Query& query : queries) {
    const Children said = children(find_or_ask(query));
    std::array<Token, kMostSiblings> tokens;
    std::array<float, kMostSiblings> chances;
    const auto n = static_cast<std::size_t>(said.count);
    for (std::size_t i = 0; i < n; ++i) {
      tokens[i] = said.best[i].token;
      chances[i] = std::exp(said.best[i].logprob);
    }
    rank_candidates(query, std::span(tokens).first(n), chances.data());
  }
}

void CustomAdapter::describe(const Query& query, std::span<const Token> tokens, float* out, int stride) {
  const Children said = children(find(memory(query.sequence), query.state.path));
  if (said.count == 0) return;
  const auto n = static_cast<std::size_t>(said.count);
  core::describe(std::span(said.best).first(n), said.best[0].logprob, tokens, out, stride);
}

CustomAdapter::Found CustomAdapter::find(const Memory& memory, std::span<const Token> path) const {
  for (const Answer& answer : memory.answers) {
    if (!starts_with(path, answer.path)) continue;
    const auto at = follow(answer.guesses, path.subspan(answer.path.size()));
    if (!at) continue;
    const bool said =
        *at < 0 || answer.guesses[static_cast<std::size_t>(*at)].last || has_children(answer.guesses, *at);
    if (said) return {&answer, *at};
  }
  return {};
}

CustomAdapter::Found CustomAdapter::find_or_ask(const Query& query) {
  Memory& m = memory(query.sequence);
  const Found found = find(m, query.state.path);
  if (found.answer != nullptr) return found;
  ask(m, query.state);
  return {&m.answers.back(), -1};
}

void CustomAdapter::ask(Memory& memory, const PathState& state) {
  auto said = propose({memory.text, state.committed, state.path});
  Status right = said ? check(*said) : Status(tl::unexpected(said.error()));
  if (!right) note(memory, right.error().message);
  memory.answers.push_back(
      {{state.path.begin(), state.path.end()}, right ? *std::move(said) : std::vector<Guess>{}});
}

Result<std::vector<Guess>> CustomAdapter::propose(const DraftPlace& place) {
  const std::lock_guard lock(one_at_a_time_);
  try {
    return drafter_.drafter->propose(place);
  } catch (const std::exception& thrown) {
    return fail(thrown.what());
  } catch (...) {
    return fail("it threw what is no std::exception");
  }
}

template <class Call>
void CustomAdapter::tell(Memory& memory, Call&& call) {
  const std::lock_guard lock(one_at_a_time_);
  try {
    call();
  } catch (const std::exception& thrown) {
    note(memory, thrown.what());
  } catch (...) {
    note(memory, "it threw what is no std::exception");
  }
}

void CustomAdapter::note(Memory& memory, const std::string& what) {
  if (memory.failures++ == 0) memory.problem = fmt::format("drafter `{}`: {}", drafter_.name, what);
}

Status CustomAdapter::check(std::span<const Guess> guesses) const {
  if (guesses.size() > kMostGuesses)
    return fail(
        fmt::format("{} guesses in one answer are too many; at most {}", guesses.size(), kMostGuesses));
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    const Guess& guess = guesses[i];
    if (guess.token < 0 || guess.token >= vocab_)
      return fail(
          fmt::format("guess {} is token {}; the vocabulary has 0 to {}", i + 1, guess.token, vocab_ - 1));
    if (!(guess.chance > 0.0f && guess.chance <= 1.0f))
      return fail(fmt::format("guess {} (token {}) has a chance of {}; it should be above 0 and at most 1",
                              i + 1, guess.token, guess.chance));
    if (guess.parent < -1 || guess.parent >= static_cast<int>(i))
      return fail(fmt::format("guess {} follows guess {}; it should follow an earlier one, or -1", i + 1,
                              guess.parent + 1));
  }
  return {};
}

CustomAdapter::Children CustomAdapter::children(const Found& found) const {
  Children out;
  if (found.answer == nullptr) return out;
  const auto likelier = [](const Ranked& a, const Ranked& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
  };
  for (const Guess& guess : found.answer->guesses) {
    if (guess.parent != found.guess) continue;
    const auto end = out.best.begin() + out.count;
    // Said twice: the first counts, for that is the one whose children are found.
    if (std::any_of(out.best.begin(), end, [&](const Ranked& r) { return r.token == guess.token; })) continue;
    const Ranked said{guess.token, std::log(guess.chance), 0};
    const auto at = std::upper_bound(out.best.begin(), end, said, likelier);
    if (at == out.best.end()) continue;
    const bool full = out.count == static_cast<int>(out.best.size());
    std::move_backward(at, full ? end - 1 : end, full ? end : end + 1);
    *at = said;
    if (!full) ++out.count;
  }
  return out;
}

Status check_custom_drafters(std::span<const NamedDrafter> drafters) {
  for (std::size_t i = 0; i < drafters.size(); ++i) {
    const std::string& name = drafters[i].name;
    const auto parsed = parse_drafters(name);
    const bool word = parsed && parsed->size() == 1 && (*parsed)[0].name == name;
    if (!word)
      return fail(
          fmt::format("custom drafter \"{}\": the name should be one word of a-z, 0-9, - and _ that "
                      "begins with a letter, and not `none`",
                      name));
    for (const DrafterRow& row : drafter_rows())
      if (row.name == name)
        return fail(fmt::format("custom drafter `{}` has the name of a built-in one; choose another", name));
    for (std::size_t j = 0; j < i; ++j)
      if (drafters[j].name == name) return fail(fmt::format("there are two custom drafters `{}`", name));
    if (drafters[i].drafter == nullptr) return fail(fmt::format("custom drafter `{}` is null", name));
  }
  return {};
}

}  // namespace coppice::core
