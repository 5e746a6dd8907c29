// A corpus is a folder: corpus.json says what its shards hold and how they came to be.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "corpus/corpus_file.h"

namespace coppice::core {

// corpus.json. What is not of use to readers in code is in `settings`, as JSON.
struct CorpusDescription {
  CorpusShape shape;
  std::string target;       // name of the model's file
  std::string target_hash;  // 32 hexadecimal digits: hash_of() the file, high half first
  std::vector<int> feature_layers;
  std::vector<std::string> kinds;                                      // of texts, by index
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();  // sampling, lengths, prompt files, ...

  std::string to_text() const;
  static Result<CorpusDescription> parse(const std::string& text, const std::string& name);
};

// Shards of a folder in the order of their numbers: paths. Files of other names are not looked at.
Result<std::vector<std::string>> corpus_shards(const std::string& folder);
std::string corpus_shard_path(const std::string& folder, int number);
// The number after the largest there is.
int next_corpus_shard(const std::vector<std::string>& shards);

Result<CorpusDescription> read_corpus_description(const std::string& folder);
Status write_corpus_description(const std::string& folder, const CorpusDescription& description);
// A bijection of 64 bits whose values look random (splitmix64's finaliser).
std::uint64_t corpus_bits(std::uint64_t x);
// What Sampling::seed was for the text of a job, of a corpus of this seed.
std::uint64_t corpus_seed(std::uint64_t seed, std::uint64_t job);
bool is_corpus_folder(const std::string& path);  // a folder with a corpus.json

}  // namespace coppice::core
