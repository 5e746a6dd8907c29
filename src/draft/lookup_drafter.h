// The drafter `lookup`: what followed when the last tokens stood in this prompt or answer before
// (suffix_index.h). Several continuations are weighed, for contexts of 1 to 12 tokens.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "draft/registry.h"
#include "draft/suffix_index.h"

namespace coppice::core {

class LookupDrafter final : public Drafter {
 public:
  // Remembers up to max_tokens of each sequence.
  LookupDrafter(int sequences, int max_tokens);

  std::string_view name() const override { return "lookup"; }
  DrafterShape shape() const override;
  Status begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) override;
  void end(int sequence) override;
  void predict(std::span<Query> queries) override;
  void describe(const Query& query, std::span<const Token> tokens, float* out, int stride) override;
  // The longest context that was seen: 0 none, else its place in kSuffixLengths plus 1.
  int bucket(const Query& query) override;
  void observe(int sequence, std::span<const Token> accepted) override;

 private:
  // How often the longest match was right about the next token: of late, and where a context as long matched.
  struct Record {
    float lately = 0;
    float by_length[kSuffixOrders + 1] = {};
  };
  // What was found at the node that was asked about last: predict(), bucket() and describe() follow each
  // other. Forgotten when the sequence grows.
  struct Found {
    int length = -1;  // of the path; -1: nothing
    std::array<Token, kMaxTreeDepth> path;
    std::array<SuffixContext, kSuffixOrders> contexts;
    SuffixMatch match;
  };
  void see(int sequence, Token token);
  const Found& find(const Query& query);

  int max_tokens_;
  std::vector<std::unique_ptr<SuffixIndex>> indices_;  // [sequences], made by the first begin()
  std::vector<Record> records_;                        // [sequences]
  std::vector<Found> found_;                           // [sequences]
};

// lookup, or lookup(max=TOKENS).
Result<std::unique_ptr<Drafter>> make_lookup(const DrafterNode& node, const DraftEnvironment& environment);

}  // namespace coppice::core
