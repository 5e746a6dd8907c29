// What a pass works in, and the pass itself. Everything is sized once; run() is called on every thread and
// allocates nothing.
#pragma once

#include <atomic>
#include <climits>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/composed.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/pass_parts.h"
#include "model/slim.h"
#include "model/weights.h"

namespace coppice::core {

struct Context::Workspace {
  // Where one thread is in the pass.
  struct Lane : PassThread {
    int stage;                  // the layer, or the number of layers: the head
    std::span<const int> live;  // rows this part of a layer works on; live row j lies at j in `inputs`
  };

  // Committed positions of a sequence that some row of the pass sees: those before `end`, but so many; in
  // layers with a window of the model's own, those from `begin` on.
  struct Seen {
    int end = 0;
    int left_out = INT_MAX;
    int begin = INT_MAX;
  };
  // What a block adds to the residual stream, on its way through `out`.
  struct Branch {
    const WeightVector* bias;
    const NormWeights* post_norm;
  };

  Workspace(const Model& model, const ContextOptions& options, KvCache& cache, ThreadPool& pool);
  Status allocate();

  void use(const Variant& variant);  // of the passes to come

  // Before the pass, one thread: what each row sees and where it stores, and what it costs.
  void resolve(std::span<const Row> pass);
  void resolve_row(int index);
  void narrow_view(int index);  // to the window
  // The first position of a row's view that layers with a window of the model's own see.
  int first_seen(int index) const;
  void make_rope();
  // The pass, on every thread.
  void run(int thread);

  // Stages of run(): a barrier after each.
  void embed(const Lane& lane);
  void layer(Lane& lane);
  void head(const Lane& lane);
  void norm_rows(const Branch* added, const NormWeights& weights, bool quantise, const Lane& lane,
                 bool add_after = false);
  void store_rows(const LayerWeights& layer, const Lane& lane);
  void attend(bool quantise, const Lane& lane);
  void quantise_rows(bool quantise, const Lane& lane);
  void activate(const LayerWeights& layer,
                const Lane& lane);  // the columns of this thread's share of gate and up
  void activation(float* g, float* u, float* to, int n) const;
  // Layers with experts (experts.cc).
  void feed_forward_by_experts(const LayerWeights& layer, const Lane& lane);
  void choose(const Lane& lane);
  void place_rows(std::size_t live_rows);
  void gather(const LayerWeights& layer, const Lane& lane);
  void multiply_experts(const LayerWeights& layer, std::initializer_list<WeightMatrix ExpertWeights::*> roles,
                        const Lane& lane);
  void activate_experts(const LayerWeights& layer, const Lane& lane);
  void add_experts(const Lane& lane);
  MatmulTask expert_task(const WeightMatrix& weights_of, const Inputs& inputs, float* y, std::size_t y_stride,
                         std::size_t expert) const;
  std::size_t used() const { return static_cast<std::size_t>(config.experts_used); }
  void finish_rows(const Lane& lane);
  void capture_features(const Lane& lane);  // where a layer begins, and behind the last
  void multiply_head(const Lane& lane);
  void look_at_logits(int group_begin, int group_end, const Lane& lane);
  // Computes this thread's share; the caller ends the stage. `stage` is one of those with matmuls.
  void multiply(PassStage stage, const Lane& lane);
  // The barrier at the end of a stage; the tap sees its products.
  void finish(PassStage stage, const Lane& lane);
  void end_stage(PassStage stage, const Lane& lane);

  Products products_of(PassStage stage, int layer);
  WeightStretch next_weights(PassStage stage, const Lane& lane);
  void show_products(PassStage stage, const Lane& lane);  // to the tap
  void show(const Products& products, const Lane& lane);
  void attention_row(int live_row, const Lane& lane);
  void prepare_heads(const LayerWeights& layer, int row, const Lane& lane);  // biases, norms, RoPE
  static Branch feed_forward_branch(const LayerWeights& layer);
  void add_residual(const Branch& branch, int row, std::size_t live_row);
  void show_residual(const Lane& lane);  // to the tap: where a layer begins, and behind the last
  void norm(const NormWeights& weights, const float* from, float* to) const;
  void norm_heads(const NormWeights& weights, float* x, int heads) const;
  void quantise_stretch(const Inputs& to, std::size_t at, int count, bool quantise, int stage);
  void not_finite(int stage);

  const Model& model;
  const ModelConfig& config;
  const ModelWeights* weights = nullptr;  // the variant's
  const ContextOptions& options;
  const Kernels& kernels;
  KvCache& cache;
  ThreadPool& pool;
  LayerTap* tap = nullptr;
  PassClock* clock = nullptr;
  double clock_time = 0;  // when the last stage ended

  // Of the variant.
  int hidden = 0, feed_forward = 0;
  int blocks = 0;  // that run whole; those above only store K and V

  // Widths.
  int q_width, kv_width;   // heads * head_dim, kv_heads * head_dim
  int k_offset, v_offset;  // where keys and values start in a row of qkv
  std::size_t qkv_stride;  // floats
  std::size_t gate_stride, ff_stride, out_stride, head_stride;
  // Of scores, made in f64 and rounded once: log2(e) / sqrt(head_dim); with a soft cap c over that score
  // 2 log2(e) / (c sqrt(head_dim)), and c log2(e).
  float query_scale, score_cap;

  // Buffers, all in `memory`.
  Buffer memory;
  float* x = nullptr;               // [rows, hidden], the residual stream
  float* qkv = nullptr;             // [max_rows, qkv_stride]
  float* gate = nullptr;            // [max_rows, gate_stride]
  float* up = nullptr;              // [max_rows, ff_stride], or in the same rows as gate
  float* out = nullptr;             // [max_rows, out_stride], on its way to the residual stream
  float* head_out = nullptr;        // [max_logits, head_stride]
  float* maxima = nullptr;          // [max_logits, head_stride / 32], of each group of 32 of head_out
  float* full_logits = nullptr;     // [max_logits, vocab], trimmed heads only; the rest stays -infinity
  float* features = nullptr;        // [max_rows, feature_layers, hidden]
  float* cos_sin = nullptr;         // [max_rows, rope_dims]
  float* window_cos_sin = nullptr;  // the same for layers with a window, where they have a base of their own
  float* attention = nullptr;       // [threads, attention_floats]
  std::size_t attention_floats = 0;
  Inputs normed;     // of attention, the feed-forward part and the head; attention's own output
  Inputs activated;  // of the down projection
  std::int32_t* row_slots = nullptr;  // [max_rows, slots]: scratch slots a row sees, oldest first

  // Experts only; a place is a row at an expert (experts.cc).
  float* router_out = nullptr;  // [max_rows, router_stride]
  float* expert_out = nullptr;  // [max_rows * used, out_stride]
  Inputs gathered;              // [max_rows * used, hidden]
  std::size_t router_stride = 0;
  std::vector<ExpertChoice> choices;         // [max_rows, used]
  std::vector<int> place_of, choice_at;      // [max_rows * used] by choice, and by place
  std::vector<int> first_place, next_place;  // [experts + 1] of each expert; the last: how many there are

  // Windows only: [max_rows, window_blocks] block numbers of what a row sees. Rows that see the same blocks
  // of a sequence share the first one's.
  std::int32_t* window_tables = nullptr;
  int window_blocks = 0;

  // The pass at hand.
  std::span<const Row> rows;
  std::vector<AttentionRow> attention_rows;  // [max_rows], of the layer at hand, by live row
  std::vector<int> committed;                // [max_rows] committed positions below a row's scratch ones
  std::vector<int> unseen;                   // [max_rows] of these, the ones the window leaves out
  std::vector<const std::int32_t*> tables;   // [max_rows] of the blocks it sees
  std::vector<int> new_rows;                 // [sequences] rows each sequence commits
  std::vector<Seen> views;                   // [sequences]
  std::vector<int> every_row;                // [max_rows] 0, 1, 2, ...
  std::vector<int> wanted_rows;              // [max_rows] rows whose output anyone needs
  std::vector<int> logit_index;              // [max_rows] place among the logits, -1: did not want them
  std::vector<int> feature_index;            // [max_rows] place among the features, -1: did not want them
  int logit_count = 0, wanted_count = 0, feature_count = 0;
  std::vector<double> frequencies, window_frequencies;  // [rope_dims / 2]
  std::vector<std::uint64_t> seen;  // [sequences, slots] number of the pass that counted the slot
  std::uint64_t pass_number = 0;
  std::uint64_t weight_bytes = 0, kv_bytes = 0;  // of this pass
  std::atomic<int> bad_stage{0};                 // the first stage with a value that is not finite
};

}  // namespace coppice::core
