// What can be made for a model without a training library: the mixer's prior for a mix of drafters, and
// n-grams of the size that pays.
#pragma once

#include <coppice/corpus.h>
#include <coppice/error.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coppice {

// How good a mix of drafters is on texts it has not seen, as text is replayed through it.
struct MixJudgement {
  static constexpr std::array<int, 3> kNodes = {4, 8, 16};
  struct Bin {
    double chance = 0;  // the mean of those said
    double taken = 0;   // the share that was
    std::uint64_t guesses = 0;
  };
  std::uint64_t texts = 0, tokens = 0;
  double log_loss = 0;                      // nats a token, of which guess was drawn or that none was
  double top1 = 0;                          // share of the tokens where the best guess was right
  double calibration = 0;                   // mean distance of chance and share taken, over all guesses
  std::array<Bin, 10> bins;                 // guesses by chance: below 0.1, below 0.2, ...
  std::array<double, 3> tokens_per_pass{};  // in trees of kNodes
};

struct TrainMixerOptions {
  std::string model;               // the target's GGUF file: its vocabulary is the texts'
  std::vector<std::string> texts;  // token files (docs/file-formats.md) that the target wrote
  std::string drafters;            // the mix to fit for, as in Speculation; where one reads the target's
                                   // states, it runs along the texts
  std::string output;              // .mixer: a section for the mix is added or replaced, the others are kept
  // The n-gram files of the mix were counted on these same texts: to see them as they are on unknown text,
  // the mix is fitted with n-grams counted anew, of the same order, on half of the texts, and judged so.
  bool recount = false;
  std::uint64_t tokens = 80000;  // to learn from, of greedy text and of sampled text each
  double held_out = 0.1;         // share of the texts that is judged and not learned from. (0, 0.5]
  std::uint64_t judged = 10000;  // tokens of them, of greedy and of sampled text each
  int context = 2048;            // positions; longer texts are cut there
  int threads = 0;               // of the mix's models and the target; 0: what this process may use
  std::uint32_t seed = 1;        // of the order of the texts
  // What goes on, and how far; false stops (nothing is written then).
  std::function<bool(const std::string& what, double fraction)> progress;
};

struct TrainMixerReport {
  std::uint64_t texts = 0;
  std::uint64_t greedy_lessons = 0, sampled_lessons = 0;  // tokens learned from
  bool noise = false;  // sampled texts whose noise is known were among them
  bool stopped = false;
  // With the prior the mix had before, and with the fitted one. Without such texts: tokens = 0.
  MixJudgement greedy_before, greedy_after, sampled_before, sampled_after;
};

// Errors name the file and line, or the field.
Result<TrainMixerReport> train_mixer(const TrainMixerOptions& options);

// make_corpus() with as many texts as `tokens` (above 0) takes: the prompts are begun again and again, each
// time with other seeds; where there are none, the model writes texts of its own, as many as are needed. The
// progress says 0 for all_texts: nobody knows. For n-grams of what a draft writes.
Result<CorpusReport> fill_corpus(const Model& model, const CorpusOptions& options);

struct TrainNgramOptions {
  std::string model;               // the GGUF file whose text this is: its vocabulary
  std::vector<std::string> texts;  // token files, texts, corpus folders (docs/file-formats.md)
  std::string output;              // the n-gram file
  std::string provenance;          // kept in the file; empty: the texts' names
  // Longest contexts and least counts (of continuations of contexts of 3 tokens and more; of 2 one less) to
  // try.
  std::vector<int> orders = {3, 4, 5};
  std::vector<int> least_counts = {1, 2, 3};
  double give_up = 0.005;        // share of the tokens a pass that a smaller file may cost. [0, 1)
  double held_out = 0.05;        // share of the texts that is judged, and counted only in the end. (0, 0.5]
  std::uint64_t judged = 10000;  // tokens of them
  int nodes = 8;                 // of the trees: guesses of lookup | ngram, along held-out text
  std::uint32_t seed = 1;        // of the choice of held-out texts
  std::function<bool(const std::string& what, double fraction)> progress;  // false stops
};

struct NgramTrial {
  int order = 0;
  std::vector<int> min_count;  // as in NgramBuildOptions
  std::uint64_t tokens = 0, bytes = 0;
  double tokens_per_pass = 0, top1 = 0;  // beside lookup
  double alone = 0;                      // tokens a pass without lookup
};

struct TrainNgramReport {
  bool stopped = false;
  std::uint64_t texts = 0, tokens = 0, bytes = 0;  // of the file written
  std::vector<NgramTrial> trials;                  // counted on what is not held out
  std::size_t chosen = 0;                          // of the trials: the smallest file that is good enough
  std::vector<NgramTrial> growth;                  // the chosen one on 1/16, 1/8, 1/4, 1/2, all of the texts
  double without = 0;                              // tokens a pass by lookup alone
};

// Errors name the file and line, or the field.
Result<TrainNgramReport> train_ngram(const TrainNgramOptions& options);

}  // namespace coppice
