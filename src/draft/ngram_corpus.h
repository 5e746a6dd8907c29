// Counting n-grams from files: what `coppice ngram build` does.
//   .jsonl        one text a line: {"ids": [...], "start": n} (only ids from `start` on are counted, those
//                 before serve as context; 0 without it) or {"text": "..."}. "temperature", "top_k", "seed"
//                 and "stream" may say how it was drawn
//   .npy          one dimension of 32-bit little-endian integers; -1 ends a text
//   .bin          the same integers without a header
//   a folder      a corpus (corpus/corpus_folder.h): generated tokens are counted, prompts serve as context
//   anything else UTF-8 text, tokenised as one text without control tokens
#pragma once

#include <coppice/error.h>
#include <coppice/sampling.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "draft/katz.h"
#include "text/tokenizer.h"

namespace coppice::core {

struct NgramCorpus {
  std::vector<std::string> inputs;
  std::string output;
  int order = 5;                                       // longest context in tokens, 1 to kMaxNgramContext
  std::vector<int> min_count;                          // as in KatzBuildOptions
  int max_continuations = 0;                           // as in KatzBuildOptions
  std::string provenance;                              // kept in the file; empty: the inputs' names
  std::function<void(std::uint64_t tokens)> progress;  // may be empty; called now and then
};

struct NgramReport {
  std::uint64_t texts = 0, tokens = 0, bytes = 0;  // counted; size of the file written
};

// Errors name the file and the line or offset.
Result<NgramReport> build_ngram(const Tokenizer& tokenizer, const NgramCorpus& corpus);

// One input file's texts, in order. Used by build_ngram(); exposed for others who read token files.
struct CorpusText {
  std::vector<Token> tokens;
  std::size_t start = 0;
  // How its tokens were drawn, where that is known (fields "temperature", and "top_k", "seed", "stream").
  float temperature = 0;
  bool keyed = false;  // the noise of its draws is that of `sampling`
  Sampling sampling;
};
Status read_texts(const Tokenizer& tokenizer, const std::string& path,
                  const std::function<void(const CorpusText&)>& use);

}  // namespace coppice::core
