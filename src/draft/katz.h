// A Katz back-off n-gram model of token ids (Katz, 1987), on disk as docs/file-formats.md says, opened by
// mmap.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace coppice::core {

inline constexpr int kMaxNgramContext = 8;  // longest context, in tokens
inline constexpr int kMostJudged = 64;      // tokens at once

// What one context length says: how often the context was seen, how many different tokens followed.
struct NgramContext {
  std::uint32_t count = 0;  // 0: never seen
  std::uint32_t distinct = 0;
  std::uint64_t handle = 0;  // where its continuations lie
};

class KatzModel {
 public:
  static Result<std::shared_ptr<const KatzModel>> open(const std::string& path);
  // Over bytes that outlive the model (tests, fuzzing). Everything is checked before use.
  static Result<std::shared_ptr<const KatzModel>> parse(std::span<const std::byte> bytes, std::string name);
  ~KatzModel();

  int order() const;  // longest context in tokens (a 5-gram model has 4)
  int vocab() const;
  std::uint64_t tokens() const;  // counted
  std::uint64_t vocabulary_hash() const;
  std::size_t bytes() const;
  const std::string& provenance() const;  // what it was counted on, as its maker wrote

  // The contexts of lengths 0 .. order() that end at the end of `tokens` (oldest first). out: [order() + 1].
  void contexts(std::span<const Token> tokens, NgramContext* out) const;
  // How often `token` followed; 0 when not stored.
  std::uint32_t count(const NgramContext& context, Token token) const;
  // The most frequent continuations, by (count descending, token ascending). Returns how many.
  int top(const NgramContext& context, std::span<Token> out, std::uint32_t* counts) const;
  // Katz probability after these contexts: Good-Turing discounted counts, back-off weights stored.
  float probability(const NgramContext* contexts, Token token) const;
  // What all of that says of several tokens: how often each followed, [order() + 1, tokens], and its
  // probability, [tokens]. The same numbers for a fraction of the searches.
  void judge(const NgramContext* contexts, std::span<const Token> tokens, std::uint32_t* counts,
             float* probabilities) const;
  // The k most probable continuations under the whole model; about a microsecond.
  int predict(const NgramContext* contexts, std::span<Token> out, float* probabilities) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  KatzModel();
};

struct KatzBuildOptions {
  int order = 4;  // longest context
  int vocab = 0;
  std::uint64_t vocabulary_hash = 0;  // of the tokenizer's vocabulary; the drafter refuses another one
  // Per context length: continuations seen less often are dropped. Default 1; a longer context never has a
  // smaller limit than a shorter one (it is raised).
  std::vector<int> min_count;
  int max_continuations = 0;  // kept per context, 0: all
  std::string provenance;     // what it is counted on, kept in the file
};

// Counts texts (each by itself: contexts do not cross texts) and writes the file.
class KatzBuilder {
 public:
  explicit KatzBuilder(const KatzBuildOptions& options);
  ~KatzBuilder();
  // Counts tokens [start, end) of a text; tokens before `start` serve as context only.
  void add(std::span<const Token> text, std::size_t start = 0);
  std::uint64_t tokens() const;
  Status write(const std::string& path) const;
  std::vector<std::byte> to_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice::core
