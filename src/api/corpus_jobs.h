// What a corpus is made of before it is made: one job a text, with a number, a seed and a temperature that
// follow from the options alone.
#pragma once

#include <coppice/corpus.h>
#include <coppice/error.h>
#include <coppice/model.h>
#include <coppice/token.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "corpus/corpus_folder.h"

namespace coppice {

// Job numbers: source * 2^32 + line - 1 in a file's lines, or the how manieth of the self-made ones.
inline constexpr int kSelfMade = 0;  // the source of those; files are 1, 2, ...: prompts, then scored ones

struct CorpusJob {
  std::uint64_t id = 0;
  int kind = 0;
  std::vector<Token> tokens;  // known ones: the prompt, or all of a text that is scored
  int start = 0;              // scored: the first token that counts as generated; else tokens.size()
  bool scored = false;
  bool self = false;  // the model writes its instruction first
  float temperature = 0;
  std::uint64_t seed = 0;
};

struct CorpusJobs {
  std::vector<CorpusJob> jobs;     // in an order mixed by seed: any part is like the whole
  std::vector<std::string> kinds;  // those given, then new ones
  nlohmann::ordered_json sources;  // files with their hashes, for corpus.json
  std::uint64_t left_out = 0;
  std::string first_left_out;
};

using core::corpus_seed;

// `kinds`: those of an earlier run. Errors name file and line.
Result<CorpusJobs> corpus_jobs(const Model& model, const CorpusOptions& options,
                               std::vector<std::string> kinds);

}  // namespace coppice
