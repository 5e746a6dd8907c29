// Weights and shape of a model, immutable, shared by any number of contexts; and a Context: what one user of
// it needs to run passes.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "gguf/file.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/kv_cache.h"
#include "model/row.h"

namespace coppice::core {

struct PackedCache;   // packed_cache.h
struct ModelWeights;  // weights.h: packed matrices and vectors by role
struct Variant;       // slim.h: one way to run a model

class Model {
 public:
  // Reads, checks and packs. Errors name the file, the tensor or the key. A model larger than memory is
  // refused before anything is read. `progress` (optional) is called with the fraction done. With a `cache`
  // packed weights are looked for there, and left there.
  static Result<std::shared_ptr<const Model>> load(std::shared_ptr<const gguf::File> file, ThreadPool& pool,
                                                   const std::function<void(double)>& progress = {},
                                                   PackedCache* cache = nullptr);
  ~Model();
  // A model of some blocks of another one, numbered in rising order, whose weights it shares and keeps alive.
  // Of a slimmable model it has the whole width.
  static std::shared_ptr<const Model> of_blocks(std::shared_ptr<const Model> whole,
                                                std::span<const int> blocks);

  const ModelConfig& config() const { return config_; }
  const ModelWeights& weights() const { return *weights_; }
  const std::string& path() const { return path_; }
  std::size_t weight_bytes() const;  // packed bytes that a pass with logits for one row streams

  // The ways to run it: the widths of a slimmable model, the narrowest first, then its early exit. They share
  // the weights. Most models have one.
  std::span<const Variant> variants() const;
  int whole() const;  // the variant that is all of the model

  // Full token ids of the rows of a trimmed head; empty: the head is the whole vocabulary.
  std::span<const Token> head_tokens() const;

 private:
  Model();
  ModelConfig config_;
  std::unique_ptr<ModelWeights> weights_;
  std::vector<Variant> variants_;
  std::string path_;
  std::shared_ptr<const Model> whole_;  // whose weights these are, if not its own
};

// A row at position p sees the first `sink` positions and those from p + 1 - recent on, both in whole blocks
// of 16: at least so many (the sinks of arXiv:2309.17453). Keys keep the positions they were made for.
struct AttentionWindow {
  int sink = 16;
  int recent = 0;  // 0: every row sees all positions; else at least kLeastRecent, so that a tree fits
  static constexpr int kLeastRecent = 64;
};

inline constexpr int kMaxFeatureLayers = 16;

struct ContextOptions {
  KvOptions kv;
  AttentionWindow window;
  // The most positions a sequence will ever have; 0: kv.positions. Only models whose RoPE depends on it ask.
  int longest = 0;
  int max_rows = 64;    // of one pass
  int max_logits = 64;  // rows of one pass that may want logits
  // Where rows that want kFeatures leave the residual stream, at most kMaxFeatureLayers: layer l is where
  // block l begins; l = layers is behind the last block, before the output norm. What heads that draft from
  // several layers read (arXiv:2503.01840, section 3).
  std::vector<int> feature_layers;
};

// Counted where the kernels are called, never estimated.
struct PassStats {
  std::uint64_t passes = 0;
  std::uint64_t rows = 0;
  std::uint64_t weight_bytes = 0;  // packed bytes streamed, once a pass and matrix
  std::uint64_t kv_bytes = 0;      // cache bytes that attention's rows see, shared lines once a pass
  double seconds = 0;
};

// Sees every matmul of a pass (coppice eval layers). Null on the fast path. Called by thread 0.
struct LayerTap {
  virtual ~LayerTap() = default;
  // Inputs are task.x (float kinds) or task.q (codes); x is also given for quantised kinds: [rows, inputs].
  virtual void matmul(const char* tensor, const MatmulTask& task, const float* x) = 0;
  // The residual stream [rows, hidden] where block `layer` begins; layer = layers: behind the last block.
  virtual void residual(int layer, const float* x, int rows) { (void)layer, (void)x, (void)rows; }
};

// Where the time of passes goes, as thread 0 sees it: seconds from one barrier to the next, by the stage
// between them, waiting for the other threads included.
enum class PassStage { norm, query_key_value, store, attention, output, gate_up, down, head, other };
struct PassClock {
  static constexpr int kStages = static_cast<int>(PassStage::other) + 1;
  static std::span<const char* const> names();
  double seconds[kStages] = {};
};

class Context {
 public:
  static Result<std::unique_ptr<Context>> make(std::shared_ptr<const Model> model,
                                               const ContextOptions& options, ThreadPool& pool);
  ~Context();

  // One pass over every row (at most max_rows). Rows with slot = kCommitted are committed when it returns.
  // Fails only when a value is not finite: the error names the layer; nothing is committed then. Does not
  // allocate otherwise. Room for committed rows must have been reserved; slots must be below kv.slots.
  Status forward(std::span<const Row> rows);
  // Later passes run this variant of the model; at first the whole. What another variant wrote into the cache
  // stays: its layout is the same.
  void set_variant(int variant);

  // Of the last pass, by row index; the row must have wanted it.
  // logits: [vocab] in full token ids (a trimmed head leaves the others at -infinity).
  std::span<const float> logits(int row) const;
  // [ceil(vocab / 32)]: the largest of each 32 logits; empty where the head is trimmed.
  std::span<const float> maxima(int row) const;
  std::span<const float> hidden(
      int row) const;  // [hidden of the variant], after the last block, before the output norm
  // [feature_layers, hidden], in the order of options().feature_layers. Like the rest it has the same bits
  // whatever else is in the pass.
  std::span<const float> features(int row) const;

  const Model& model() const { return *model_; }
  KvCache& cache() { return cache_; }
  const ContextOptions& options() const { return options_; }
  const PassStats& stats() const { return stats_; }
  void reset_stats() { stats_ = {}; }
  void set_tap(LayerTap* tap) { tap_ = tap; }
  void set_clock(PassClock* clock) { clock_ = clock; }  // null: none
  std::size_t bytes() const;                            // memory held, cache included

 private:
  Context(std::shared_ptr<const Model> model, const ContextOptions& options, ThreadPool& pool, KvCache cache);
  struct Workspace;
  std::shared_ptr<const Model> model_;
  ContextOptions options_;
  ThreadPool& pool_;
  KvCache cache_;
  std::unique_ptr<Workspace> work_;
  PassStats stats_;
  LayerTap* tap_ = nullptr;
  PassClock* clock_ = nullptr;
};

}  // namespace coppice::core
