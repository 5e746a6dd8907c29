// A shard of a corpus: texts as token ids, with the target's best log-probabilities for every token that was
// generated, and its residual stream where that was asked for. docs/file-formats.md has the bytes.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/os.h"

namespace coppice::core {

// What all shards of a corpus have in common.
struct CorpusShape {
  std::uint64_t vocabulary_hash = 0;  // docs/file-formats.md, n-gram files
  int vocab = 0;
  int top_k = 0;     // K: log-probabilities a token; 0: none, else even
  int features = 0;  // F: layers of the residual stream; 0: none
  int hidden = 0;    // H: width of the residual stream; at least 1 where there are features
  bool operator==(const CorpusShape&) const = default;
};

inline constexpr std::uint32_t kEndedByItself = 1;  // the last token ends a text; else a limit cut it
inline constexpr std::uint32_t kCutRepetition = 2;  // it was cut because it began to repeat itself

// One text. `start`: the first generated token, 1 <= start <= n; there are n - start generated ones.
struct CorpusRecord {
  std::uint64_t job = 0;  // who asked for it: corpus.json says how
  int start = 0;
  float temperature = 0;
  int kind = 0;  // index into the kinds of corpus.json
  std::uint32_t flags = 0;
  std::vector<Token> ids;                   // [n]
  std::vector<Token> top_tokens;            // [n - start, K], the most probable first
  std::vector<std::uint16_t> top_logprobs;  // [n - start, K] f16, natural log, temperature 1, no filter
  std::vector<std::uint16_t> features;      // [n, F, H] f16, after the pass over each token
};

// The same as views into a shard.
struct CorpusRecordView {
  std::uint64_t job = 0;
  int start = 0;
  float temperature = 0;
  int kind = 0;
  std::uint32_t flags = 0;
  std::span<const Token> ids;
  std::span<const std::uint16_t> features;  // [n, F, H] f16; empty where F is 0

  // What the target said about token `position`, start <= position < n: [K], the most probable first.
  std::span<const Token> top_tokens(int position) const;
  std::span<const std::uint16_t> top_logprobs(int position) const;  // f16

  const std::byte* top = nullptr;  // of position `start`
  int top_k = 0;
};

class CorpusShard {
 public:
  // Everything is checked before anything is used, but for the values of features: any f16 may stand there.
  // Errors name the file and what is wrong.
  static Result<CorpusShard> open(const std::string& path);
  // The same over bytes that outlive it (tests, fuzzing), at an address that is a multiple of 8.
  static Result<CorpusShard> parse(std::span<const std::byte> bytes, std::string name);

  const CorpusShape& shape() const { return shape_; }
  std::size_t bytes() const { return bytes_.size(); }
  int texts() const { return static_cast<int>(records_.size()); }
  CorpusRecordView text(int index) const;

 private:
  Status check();
  Status check_record(std::uint64_t begin, std::uint64_t end) const;

  MappedFile file_;
  std::span<const std::byte> bytes_;
  std::string name_;
  CorpusShape shape_;
  std::vector<std::uint64_t> records_;  // where each begins
};

// Collects texts in memory and writes them as one shard.
class CorpusShardWriter {
 public:
  explicit CorpusShardWriter(const CorpusShape& shape);

  void add(const CorpusRecord& text);  // its sizes must be those of the shape
  int texts() const { return static_cast<int>(records_.size()); }
  std::size_t bytes() const;                    // of the file as it would be now
  std::vector<std::byte> to_bytes() const;      // tests, fuzz seeds
  Status write(const std::string& path) const;  // aside, then renamed
  void clear();

 private:
  std::vector<std::byte> header() const;
  std::vector<std::byte> table() const;

  CorpusShape shape_;
  std::vector<std::byte> body_;         // records, from kCorpusHeaderBytes on
  std::vector<std::uint64_t> records_;  // where each begins in the file
};

}  // namespace coppice::core
