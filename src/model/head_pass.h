// What a pass of a draft head works in, and the pass itself (head_forward.cc). Everything is sized once;
// run() is called on every thread and allocates nothing.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "model/head_model.h"
#include "model/pass_parts.h"

namespace coppice::core {

struct HeadContext::Pass {
  using Lane = PassThread;

  Pass(const HeadModel& model, const ContextOptions& options, KvCache& cache, ThreadPool& pool);
  Status allocate();
  // Before the pass, one thread: what each row sees and where it stores, and what it costs.
  void resolve(std::span<const HeadRow> pass);
  void resolve_row(int index);

  // The pass, on every thread, and its stages: a barrier after each.
  void run(int thread);
  void fuse(const Lane& lane);   // features -> g
  void begin(const Lane& lane);  // x = [norm(embedding), norm(g)]
  void store(const Lane& lane);
  void attend(const Lane& lane);
  void feed_forward(const Lane& lane);
  void activate(const Lane& lane);
  void output(const Lane& lane);
  void look_at_logits(int group_begin, int group_end, int rows);

  // `then`: the products this thread computes next, whose first weights it fetches on the way.
  void multiply(const Products& products, const Products& then, int rows, const Lane& lane);
  void quantise(const Inputs& to, std::size_t at, int count, bool wanted);
  AttentionRow attention_row(int live_row) const;
  float* residual(int row) const { return x + static_cast<std::size_t>(row) * hidden; }

  const HeadConfig& config;
  const ModelConfig& block;
  const HeadWeights& weights;
  const PackedMatrix& embedding;
  const WeightMatrix& head;
  const ContextOptions& options;
  const Kernels& kernels;
  KvCache& cache;
  ThreadPool& pool;

  // Widths.
  int hidden, q_width, kv_width;
  int k_offset, v_offset;                                      // where keys and values start in a row of qkv
  std::size_t qkv_stride, ff_stride, out_stride, head_stride;  // floats
  float query_scale;                                           // log2(e) / sqrt(head_dim)

  // Buffers, all in `memory`.
  Buffer memory;
  float* x = nullptr;            // [max_rows, hidden], the residual stream
  float* qkv = nullptr;          // [max_rows, qkv_stride]
  float* gate = nullptr;         // [max_rows, ff_stride]
  float* up = nullptr;           // [max_rows, ff_stride]
  float* out = nullptr;          // [max_rows, out_stride]
  float* token = nullptr;        // [threads, hidden], an embedding on its way to its norm
  float* head_out = nullptr;     // [max_logits, head_stride]
  float* group_best = nullptr;   // [max_logits, head_stride / 32]
  float* full_logits = nullptr;  // [max_logits, vocab], where there is a map; the rest stays -infinity
  float* maxima = nullptr;       // [max_logits, ceil(vocab / 32)], of full ids, where there is a map
  float* cos_sin = nullptr;      // [max_rows, rope_dims]
  float* attention = nullptr;    // [threads, attention_floats]
  std::size_t attention_floats = 0;
  Inputs fused;   // of fc
  Inputs normed;  // [rows, 2 hidden] of q, k, v; then of the other stages, [rows, hidden] or [rows, q_width]
  Inputs activated;                   // of down
  std::int32_t* row_slots = nullptr;  // [max_rows, slots]: scratch slots a row sees, oldest first

  Products fusing, query_key_value, attention_output, gate_up, down, last;

  // The pass at hand.
  std::span<const HeadRow> rows;
  std::vector<int> committed;            // [max_rows] committed positions a row sees
  std::vector<int> new_rows;             // [sequences] rows each sequence commits
  std::vector<int> visible;              // [sequences] committed positions that some row of it sees
  std::vector<int> fused_row;            // [max_rows] place among the rows with features, -1: it has none
  std::vector<int> with_features, live;  // rows with features; rows that want something
  std::vector<int> logit_rows;           // of live rows those that want logits: their place in `live`
  std::vector<int> logit_index;          // [max_rows] place among the logits, -1: did not want them
  std::vector<AttentionRow> attention_rows;
  std::vector<double> frequencies;  // [rope_dims / 2]
  std::uint64_t weight_bytes = 0, kv_bytes = 0;
  std::atomic<bool> bad{false};  // a value is not finite
};

}  // namespace coppice::core
