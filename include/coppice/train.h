// Training drafts and heads for a model on its own text. In the library coppice_train, which needs LibTorch
// and is built only where that is found; `coppice train` is the command.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coppice {

// What every training run has in common. check() names the wrong field.
struct TrainLoop {
  double minutes = 0;      // budget by the clock; or
  std::int64_t steps = 0;  // by steps. The learning rate falls to zero at its end.
  double rate = 1e-3;      // highest learning rate
  double warm_up = 0.02;   // share of the budget in which it rises
  double decay = 0.01;     // AdamW's weight decay
  double clip = 1;         // of the gradient's norm
  double average = 0.998;  // of the weights' running average, which is what the file holds; 0: none
  std::uint64_t seed = 1;
  int threads = 0;                   // 0: all cores
  bool bf16 = true;                  // products on operands rounded to bf16
  bool resume = false;               // go on from OUT.checkpoint
  double checkpoint_minutes = 5;     // between checkpoints; the file is written too
  std::int64_t judge_steps = 200;    // between judgements on held-out text
  std::int64_t judge_tokens = 8192;  // of held-out text, at most; all of it in the end
  // Corpus.
  int window = 256, context = 64, batch_tokens = 2048;
  double held_out = 0.02;

  std::function<bool()> stop;  // asked after each step; true ends the run as if it were over
  std::function<void(const std::string&)> progress;  // one line about where the run stands
};
Status check(const TrainLoop& loop);

struct TrainAgreement {
  std::string name;                                  // "depth 1"
  double top1 = 0, top4 = 0, top8 = 0, overlap = 0;  // shares of held-out tokens
};

struct TrainReport {
  std::int64_t steps = 0, tokens = 0;  // scored tokens learned from, repetitions counted
  double loss = 0;                     // of the last steps
  double tokens_per_second = 0;
  bool stopped = false;  // before the budget was spent
  std::vector<TrainAgreement> agreement;
  double accepted = 0;  // tokens a pass, estimated
};

struct HeadTraining {
  std::string target, out;
  std::vector<std::string> corpora;  // folders; texts of the same prompt fall on one side of held-out
  std::string from;                  // a head to go on from; empty: made from the target's layers
  std::string command;               // for the file's provenance
  int vocabulary = 16384;            // tokens it can guess
  int depth = 3;                     // unrolled steps (arXiv:2503.01840, training-time test)
  int layer = -1;                    // of the target, whose weights the block begins with; -1: the last
  double narrowing = 0.5;            // share of a batch that goes on to the next depth
  int negatives = 1024;              // rows of the output drawn beside those that are named; 0: all
  double temperature = 1;            // of the target's distribution that is learned
  std::string objective = "kl";
  bool train_output = true;     // else the output keeps the target's rows
  std::string format = "Q8_0";  // of the matrices in the file
  TrainLoop loop;
};
Result<TrainReport> train_head(const HeadTraining& options);

// A slimmable draft: one llama-shaped file that runs at several widths (docs/file-formats.md).
struct DraftTraining {
  std::string target, out;
  std::vector<std::string> corpora;  // folders
  std::string from;                  // a draft to go on from; empty: made of the target's layers
  std::string rollouts;        // a corpus of the draft's own text, scored by the target (arXiv:2310.08461)
  double rollout_share = 0.5;  // of the steps that learn from it
  std::string command;         // for the file's provenance
  int vocabulary = 16384;      // tokens it can guess
  int layers = 2;
  int heads = 0, kv_heads = 0;  // 0: the target's
  int hidden = 0;  // hidden size at width 1; 0: two thirds of the target's, so that 1.5 is as wide as it
  std::vector<double> widths = {0.5, 0.75, 1.0, 1.25, 1.5};
  std::vector<int> source_layers;  // of the target, to begin with; empty: the first and the last ones
  int exit_layer = -1;             // blocks before the exit at width 0.75; 0: none; -1: 2, or 1 of 2
  std::string loss = "mix";        // kl, tv, lk, mix
  double temperature = 0.5;        // of both distributions in the loss
  int negatives = 1024;            // rows of the head drawn beside the named and the most used; 0: all
  double narrow_part = 0.5;        // of a step's texts that the narrower widths see
  double imitate = 0;              // weight of imitating the widest slice
  bool train_embedding = true;     // of the tokens it can guess
  bool share_embedding = false;    // the other tokens take the embedding of one it can guess: a smaller file
  std::string format = "Q8_0", head_format = "Q8_0", embedding_format = "Q4_0";  // of the file's matrices
  TrainLoop loop;
};
Result<TrainReport> train_draft(const DraftTraining& options);

}  // namespace coppice
