// A draft head in the shape of EAGLE-3 (arXiv:2503.01840, section 3.1): one block that reads what the target
// computed, and the pass over it.
//
// The row of position p takes the target's residual stream at position p at a few layers (its features) and
// the embedding of token p + 1, and predicts token p + 2:
//
//   g = fc(features)                                         [hidden]; where the target has not been yet:
//   what x = [norm(embedding), norm(g)]                           [2 hidden]     this block gave one row
//   before h = g + attention(x), at RoPE position p h = h + feed_forward(norm(h)) the next row's g, if nobody
//   knows better logits = output(norm(h))                                 [rows of the output], mapped to
//   full token ids
//
// Files are those that llama.cpp's converter writes (general.architecture "eagle3"): docs/file-formats.md.
// Weights are packed and activations are int8 as everywhere, so a row has the same bits on every instruction
// set, whatever else is in the pass.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "gguf/file.h"
#include "model/config.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/row.h"
#include "model/weights.h"

namespace coppice::core {

inline constexpr std::string_view kHeadArchitecture = "eagle3";
bool is_head(const gguf::File& file);

struct HeadConfig {
  ModelConfig block;  // vocab: the target's; layers: 1
  int target_hidden = 0;
  std::vector<int> feature_layers;    // of the target: l is where block l begins, or behind the last
  int rows = 0;                       // of the output
  bool norm_before_residual = false;  // the residual is norm(g), not g
  bool substitute = false;            // trained to do without features here and there
  int features() const { return static_cast<int>(feature_layers.size()) * target_hidden; }
};

struct HeadWeights {
  PackedWeights packed;
  WeightVector feature_mean, feature_scale;  // [features] or empty: features are (x - mean) * scale
  WeightMatrix fc;                           // features -> hidden
  WeightMatrix own_embedding;                // [vocab] rows of hidden; empty: the target's
  WeightVector token_norm, hidden_norm;      // [hidden]
  WeightMatrix query, key, value;            // 2 hidden -> heads
  WeightMatrix attention_output;
  WeightVector feed_forward_norm;
  WeightMatrix gate, up, down;
  WeightVector output_norm;
  WeightMatrix own_output;    // hidden -> rows; empty: the target's head
  std::vector<Token> tokens;  // full ids of the output's rows; empty: the whole vocabulary
};

class HeadModel {
 public:
  // Reads, checks and packs; refuses with one sentence what does not fit the target. The target stays alive
  // with it: its embedding (and its head, where the file has no output) is shared.
  static Result<std::shared_ptr<const HeadModel>> load(const gguf::File& file,
                                                       std::shared_ptr<const Model> target, ThreadPool& pool);

  const HeadConfig& config() const { return config_; }
  const HeadWeights& weights() const { return weights_; }
  const std::string& path() const { return path_; }
  const PackedMatrix& embedding() const;
  const WeightMatrix& output() const;

 private:
  HeadModel() = default;
  HeadConfig config_;
  HeadWeights weights_;
  std::shared_ptr<const Model> target_;
  std::string path_;
};

struct HeadRow {
  Row row;           // position: its place in the head's cache. token: the one after `position`
  int position = 0;  // in the text, for RoPE
  const float* features = nullptr;  // [features] of the target at `position`; or null, and then
  const float* hidden = nullptr;    // [hidden] that this head gave at the row before
};

class HeadContext {
 public:
  static Result<std::unique_ptr<HeadContext>> make(std::shared_ptr<const HeadModel> model,
                                                   const ContextOptions& options, ThreadPool& pool);
  ~HeadContext();

  // One pass. Rows as in Context::forward(): committed ones extend the cache, others go to scratch slots. A
  // row that wants nothing leaves its key and value behind and costs no more than that. Does not allocate;
  // fails only when a value is not finite, and then nothing is committed.
  Status forward(std::span<const HeadRow> rows);

  // Of the last pass, by row index; the row must have wanted it.
  std::span<const float> logits(int row) const;  // [vocab] by full id; -infinity where the head has no row
  std::span<const float> maxima(int row) const;  // [ceil(vocab / 32)], the largest of each 32
  std::span<const float> hidden(int row) const;  // [hidden], kLogits or kHidden

  const HeadModel& model() const { return *model_; }
  KvCache& cache() { return cache_; }
  const KvCache& cache() const { return cache_; }
  const PassStats& stats() const { return stats_; }
  void reset_stats() { stats_ = {}; }
  std::size_t bytes() const;

 private:
  HeadContext(std::shared_ptr<const HeadModel> model, const ContextOptions& options, ThreadPool& pool,
              KvCache cache);
  struct Pass;
  std::shared_ptr<const HeadModel> model_;
  ContextOptions options_;
  ThreadPool& pool_;
  KvCache cache_;
  std::unique_ptr<Pass> pass_;
  PassStats stats_;
};

}  // namespace coppice::core
