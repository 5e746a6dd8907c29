// A corpus folder as training needs it: which texts are held out, and stretches of texts in batches of nearly
// equal length, in an order that depends on the seed alone.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace coppice::core::train {

struct DatasetOptions {
  int window = 256;         // tokens of a stretch, at most
  int context = 64;         // of which so many at most were scored before: they give the first ones a past
  int batch_tokens = 2048;  // of a batch, padding included
  double held_out = 0.02;   // share of the texts; by hash, so that more data moves no text across
  std::uint64_t seed = 1;
};

// Field names in errors are those of the options above.
Status check(const DatasetOptions& options);

// A batch as plain arrays; tensors are made of it in trainer.cc. T is the longest stretch's length.
struct HostBatch {
  int rows = 0, length = 0, top_k = 0, features = 0;  // B, T, K, F * H
  std::vector<std::int64_t> ids;                      // [B, T]
  std::vector<std::int64_t> lengths;                  // [B]
  std::vector<std::uint8_t> scored;                   // [B, T]
  std::vector<std::int64_t> top;                      // [B, T, K]
  std::vector<float> top_logp;                        // [B, T, K]
  std::vector<std::uint16_t> feature_halves;          // [B, T, F * H], f16
};

class Dataset {
 public:
  // Every shard that is whole, of one folder or of several of the same shape and target. Errors name the
  // folder or file.
  static Result<std::unique_ptr<Dataset>> open(std::span<const std::string> folders,
                                               const DatasetOptions& options);
  ~Dataset();

  int vocab() const;
  int top_k() const;
  int hidden() const;                           // H; 0 without features
  std::span<const int> feature_layers() const;  // empty without features
  const std::string& target_hash() const;       // as corpus.json has it
  std::uint64_t vocabulary_hash() const;
  std::int64_t texts() const;
  std::int64_t scored_tokens() const;  // of the training texts
  std::int64_t held_out_tokens() const;

  // How often each token was generated in the training texts: [vocab].
  std::vector<std::uint64_t> count_tokens() const;
  // Mean and 1 / standard deviation of each feature over `tokens` tokens spread over the training texts: [F *
  // H].
  void feature_moments(std::int64_t tokens, std::vector<float>& mean, std::vector<float>& scale) const;

  // Batch number `index` of the endless sequence: epochs follow each other, each in an order of its own.
  void batch(std::int64_t index, bool features, HostBatch& out) const;
  std::int64_t batches_per_epoch() const;
  // The held-out texts' batches, always the same.
  std::int64_t held_out_batches() const;
  void held_out_batch(std::int64_t index, bool features, HostBatch& out) const;

 private:
  Dataset();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice::core::train
