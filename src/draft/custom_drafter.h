// A user's own drafter (include/coppice/drafter.h) as one of ours: remembers what it said until the text
// grows, checks it, and takes whatever it throws for silence.
#pragma once

#include <coppice/drafter.h>

#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "draft/ranking.h"
#include "draft/registry.h"

namespace coppice::core {

class CustomAdapter final : public Drafter {
 public:
  CustomAdapter(NamedDrafter drafter, int sequences, int vocab);

  std::string_view name() const override { return drafter_.name; }
  DrafterShape shape() const override;
  Status begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) override;
  void end(int sequence) override;
  void predict(std::span<Query> queries) override;
  void describe(const Query& query, std::span<const Token> tokens, float* out, int stride) override;
  void observe(int sequence, std::span<const Token> accepted) override;
  DrafterTrouble trouble(int sequence) const override;

 private:
  // What propose() said when asked at this path below the root.
  struct Answer {
    std::vector<Token> path;
    std::vector<Guess> guesses;
  };
  // Where in an answer a node stands: a guess, or -1 for the place asked about.
  struct Found {
    const Answer* answer = nullptr;
    int guess = -1;
  };
  struct Memory {
    std::uint64_t text = 0;
    std::vector<Answer> answers;  // since the text grew last
    std::uint64_t failures = 0;
    std::string problem;  // the first
  };
  // What is said at a node, the likeliest first.
  struct Children {
    int count = 0;
    std::array<Ranked, kMostSiblings> best;
  };

  Memory& memory(int sequence) { return memories_[static_cast<std::size_t>(sequence)]; }
  Found find(const Memory& memory, std::span<const Token> path) const;
  Found find_or_ask(const Query& query);
  void ask(Memory& memory, const PathState& state);
  Result<std::vector<Guess>> propose(const DraftPlace& place);
  Status check(std::span<const Guess> guesses) const;
  Children children(const Found& found) const;
  template <class Call>
  void tell(Memory& memory, Call&& call);
  void note(Memory& memory, const std::string& what);

  NamedDrafter drafter_;
  int vocab_;
  std::vector<Memory> memories_;  // [sequences]
  std::mutex one_at_a_time_;      // requests may grow on several threads
};

// Names that the expression can say and that are nobody else's.
Status check_custom_drafters(std::span<const NamedDrafter> drafters);

}  // namespace coppice::core
