// Text from a model itself, with what it said about every token, to train drafts on (docs/file-formats.md has
// the format). Texts are those that Engine::generate() gives for the same prompt, seed and sampling.
#pragma once

#include <coppice/error.h>
#include <coppice/model.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coppice {

struct CorpusTemperature {
  float temperature = 0;  // 0: greedy
  float share = 1;        // of the texts, relative to the others
};

struct CorpusProgress {
  std::uint64_t texts = 0, tokens = 0;          // in the folder and in the making; generated tokens
  std::uint64_t all_texts = 0, all_tokens = 0;  // when it will be done; 0: nobody knows
  double seconds = 0;                           // of this run
  std::uint64_t run_texts = 0, run_tokens = 0;  // of this run
  int shards = 0;                               // closed
  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(run_tokens) / seconds : 0; }
  double seconds_left() const;
};

struct CorpusOptions {
  std::string folder;
  // .jsonl, one prompt a line: {"prompt": "..."} as it stands, {"user": "..."} or {"messages": [...]} in the
  // model's chat template; "kind" (default: the file's name) says what it is.
  std::vector<std::string> prompts;
  // So many conversations that the model writes from its template's bare user turn: an instruction at
  // temperature 1, and the answer to it (arXiv:2406.08464). Of a model without a template: texts from its
  // begin token.
  std::uint64_t self = 0;
  // .jsonl, one text a line: {"ids": [...], "start": n}. Nothing is generated: the same records of texts that
  // are there. start >= 1.
  std::vector<std::string> score;
  std::uint64_t tokens = 0;  // no new text is begun when there are so many; 0: all texts

  // A text's temperature is drawn from these by its number and the seed.
  std::vector<CorpusTemperature> temperatures = {{0.0f, 0.5f}, {0.8f, 0.25f}, {1.0f, 0.25f}};
  int sampling_top_k = 50;  // where the temperature is above 0; 0: off
  std::uint64_t seed = 0;
  int max_tokens = 320;          // of an answer
  int instruction_tokens = 160;  // of an instruction the model wrote; a longer one is not answered
  int context = 2048;            // tokens of prompt and answer; longer prompts are left out

  int top_k = 16;             // log-probabilities stored a token; even, 0: none
  std::vector<int> features;  // layers whose residual stream is stored: 0 to the number of blocks

  int slots = 64;              // texts at once
  int rows = 96;               // of a pass, prompts included
  int shard_tokens = 100'000;  // a shard is closed when it has so many generated tokens
  std::function<bool(const CorpusProgress&)> progress;  // after every pass; false: close the shard and stop
};

struct CorpusReport {
  CorpusProgress progress;
  bool stopped = false;        // progress said so
  std::uint64_t left_out = 0;  // prompts that are too long for the context
  std::string first_left_out;  // "FILE, line N"
};

// Goes on where an earlier call with the same options stopped, however it ended: finished are the texts in
// closed shards. `self`, `tokens`, `slots`, `rows` and `shard_tokens` may change, and files may be added at
// the end of `prompts` or `score`; a folder that was made with other options is refused, which names the
// first. One process at a time may write a folder.
Result<CorpusReport> make_corpus(const Model& model, const CorpusOptions& options);

// A corpus as JSON text: its description, texts and tokens in all, by kind, temperature and end.
Result<std::string> describe_corpus(const std::string& folder);

struct CorpusSample {
  std::uint64_t job = 0, seed = 0;
  std::string kind;
  float temperature = 0;
  std::vector<Token> prompt, generated;
  std::vector<float> logprobs;  // of the generated tokens, where they are among the top k; else NaN
};
// Text `index` of the folder, counted through its shards.
Result<CorpusSample> corpus_sample(const std::string& folder, std::uint64_t index);

}  // namespace coppice
