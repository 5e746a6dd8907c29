// The loop that trains any Trainable: AdamW on f32 weights, warm-up and decay within a set time or number of
// steps, an average of the weights, judgements on held-out text, checkpoints to go on from, a CSV log with a
// plot.
#pragma once

#include <coppice/error.h>
#include <coppice/train.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "train/dataset.h"
#include "train/trainable.h"

namespace coppice::core::train {

// Text keys that the file gets beside what the loop knows (coppice.train.KEY): target, data, command, ...
using Provenance = std::vector<std::pair<std::string, std::string>>;

struct Run {
  TrainLoop loop;         // coppice/train.h
  std::string out;        // the file; checkpoint, log and plot lie beside it
  bool features = false;  // batches with the target's states
  Provenance provenance;
};

// Ends when the budget is spent or `loop.stop` says so; the file is written either way. Errors name file or
// field.
Result<TrainReport> train(Trainable& model, const Dataset& data, const Run& run);

// The tensors of a batch, on the CPU.
Batch to_batch(HostBatch& host);

// Judges on held-out batches, at most `tokens` scored tokens.
std::vector<Agreement> judge(Trainable& model, const Dataset& data, bool features, std::int64_t tokens);

}  // namespace coppice::core::train
