// One pass of a draft head, as every thread runs it; a barrier after each stage:
//
//   standardise, quantise | fc | norms of embedding and g, quantise | q, k, v | RoPE, store K and V |
//   attention, quantise | output | add, norm, quantise | gate, up | activation, quantise | down |
//   add, norm, quantise | the output, its largest of each 32
//
// Rows that nobody asks anything (the prompt's) end once K and V are stored. Splits are as in forward.cc: no
// split changes a bit.
#include <algorithm>

#include "model/head_pass.h"
#include "model/rope.h"

namespace coppice::core {

void HeadContext::Pass::run(int thread) {
  const Lane lane{thread, pool.size()};
  if (!with_features.empty()) fuse(lane);
  begin(lane);
  multiply(query_key_value, attention_output, static_cast<int>(rows.size()), lane);
  store(lane);
  if (live.empty()) return;
  attend(lane);
  feed_forward(lane);
  output(lane);
}

void HeadContext::Pass::fuse(const Lane& lane) {
  const int width = config.features();
  const float* mean = weights.feature_mean.data();
  const float* scale = weights.feature_scale.data();
  const bool standardised = weights.feature_mean.size > 0;
  const Span1 mine = lane.share_of(static_cast<int>(with_features.size()));
  for (int j = mine.begin; j < mine.end; ++j) {
    const float* from = rows[with_features[j]].features;
    float* to = fused.x + static_cast<std::size_t>(j) * width;
    if (standardised)
      for (int i = 0; i < width; ++i) to[i] = (from[i] - mean[i]) * scale[i];
    else
      std::copy_n(from, width, to);
    quantise(fused, static_cast<std::size_t>(j) * width, width, weights.fc.packed.quantised());
  }
  pool.barrier();
  multiply(fusing, query_key_value, static_cast<int>(with_features.size()), lane);
}

void HeadContext::Pass::begin(const Lane& lane) {
  const bool codes =
      weights.query.packed.quantised() || weights.key.packed.quantised() || weights.value.packed.quantised();
  float* own = token + static_cast<std::size_t>(lane.thread) * hidden;
  const Span1 mine = lane.share_of(static_cast<int>(rows.size()));
  for (int i = mine.begin; i < mine.end; ++i) {
    const HeadRow& row = rows[i];
    const float* g =
        fused_row[i] >= 0 ? out + static_cast<std::size_t>(fused_row[i]) * out_stride : row.hidden;
    const std::size_t at = static_cast<std::size_t>(i) * 2 * hidden;
    unpack_row(embedding, row.row.token, own);
    kernels.rms_norm(own, weights.token_norm.data(), block.norm_eps, hidden, normed.x + at);
    kernels.rms_norm(g, weights.hidden_norm.data(), block.norm_eps, hidden, normed.x + at + hidden);
    std::copy_n(config.norm_before_residual ? normed.x + at + hidden : g, hidden, residual(i));
    quantise(normed, at, 2 * hidden, codes);
    rope_row(row.position, frequencies.data(), block.rope_dims,
             cos_sin + static_cast<std::size_t>(i) * block.rope_dims);
  }
  pool.barrier();
}

void HeadContext::Pass::store(const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(rows.size()));
  for (int i = mine.begin; i < mine.end; ++i) {
    const Row& row = rows[i].row;
    float* q = qkv + static_cast<std::size_t>(i) * qkv_stride;
    float* k = q + k_offset;
    const float* angles = cos_sin + static_cast<std::size_t>(i) * block.rope_dims;
    for (int h = 0; h < block.heads; ++h) kernels.rope(q + h * block.head_dim, angles, block.rope_dims);
    for (int h = 0; h < block.kv_heads; ++h) kernels.rope(k + h * block.head_dim, angles, block.rope_dims);
    kernels.scale(query_scale, q, q_width);
    const bool commits = row.slot == kCommitted;
    const int place = commits ? row.position : row.slot;
    std::byte* to =
        commits ? cache.committed_block(row.sequence, 0, place) : cache.scratch_block(row.sequence, 0, place);
    kernels.store_kv(cache.layout(), k, q + v_offset, to, place % kBlockPositions);
  }
  const Span1 wanted = lane.share_of(static_cast<int>(live.size()));
  for (int j = wanted.begin; j < wanted.end; ++j) attention_rows[j] = attention_row(j);
  pool.barrier();
}

AttentionRow HeadContext::Pass::attention_row(int live_row) const {
  const int i = live[live_row];
  const Row& row = rows[i].row;
  AttentionRow to;
  to.q = qkv + static_cast<std::size_t>(i) * qkv_stride;
  to.out = normed.x + static_cast<std::size_t>(live_row) * q_width;
  to.position = row.position;
  to.committed = committed[i];
  to.table = cache.table(row.sequence);
  to.blocks = cache.layer_blocks(0);
  to.block_stride = cache.block_stride();
  to.slots = row_slots + static_cast<std::size_t>(i) * cache.slots();
  to.scratch = cache.layer_scratch(row.sequence, 0);
  to.scratch_stride = cache.scratch_stride();
  return to;
}

void HeadContext::Pass::attend(const Lane& lane) {
  const int count = static_cast<int>(live.size());
  const Span1 queries = lane.share_of(count * block.heads);
  AttentionTask task;
  task.rows = attention_rows.data();
  task.row_count = count;
  task.query_begin = queries.begin, task.query_end = queries.end;
  task.workspace = attention + static_cast<std::size_t>(lane.thread) * attention_floats;
  kernels.attention(cache.layout(), task);
  pool.barrier();
  const Span1 mine = lane.share_of(count);
  for (int j = mine.begin; j < mine.end; ++j)
    quantise(normed, static_cast<std::size_t>(j) * q_width, q_width,
             weights.attention_output.packed.quantised());
  pool.barrier();
  multiply(attention_output, gate_up, count, lane);
}

void HeadContext::Pass::feed_forward(const Lane& lane) {
  const int count = static_cast<int>(live.size());
  const bool codes = weights.gate.packed.quantised() || weights.up.packed.quantised();
  const Span1 mine = lane.share_of(count);
  for (int j = mine.begin; j < mine.end; ++j) {
    const std::size_t at = static_cast<std::size_t>(j) * hidden;
    kernels.add(out + static_cast<std::size_t>(j) * out_stride, residual(live[j]), hidden);
    kernels.rms_norm(residual(live[j]), weights.feed_forward_norm.data(), block.norm_eps, hidden,
                     normed.x + at);
    quantise(normed, at, hidden, codes);
  }
  pool.barrier();
  multiply(gate_up, down, count, lane);
  activate(lane);
  multiply(down, last, count, lane);
}

// By groups of 32 columns, so that a single row keeps every thread busy.
void HeadContext::Pass::activate(const Lane& lane) {
  const Span1 mine = lane.share_of(block.feed_forward / kBlockInputs);
  const int column = mine.begin * kBlockInputs, width = (mine.end - mine.begin) * kBlockInputs;
  for (std::size_t j = 0; j < live.size() && width > 0; ++j) {
    const std::size_t at = j * static_cast<std::size_t>(block.feed_forward) + column;
    kernels.silu_mul(gate + j * ff_stride + column, up + j * ff_stride + column, activated.x + at, width);
    quantise(activated, at, width, weights.down.packed.quantised());
  }
  pool.barrier();
}

void HeadContext::Pass::output(const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(live.size()));
  for (int j = mine.begin; j < mine.end; ++j) {
    float* h = residual(live[j]);
    kernels.add(out + static_cast<std::size_t>(j) * out_stride, h, hidden);
    if (!all_finite(h, hidden)) bad.store(true);
    if (logit_index[live[j]] < 0) continue;
    const std::size_t at = static_cast<std::size_t>(logit_index[live[j]]) * hidden;
    kernels.rms_norm(h, weights.output_norm.data(), block.norm_eps, hidden, normed.x + at);
    quantise(normed, at, hidden, head.packed.quantised());
  }
  pool.barrier();
  const int count = static_cast<int>(logit_rows.size());
  if (count == 0) return;
  if (lane.thread == 0) weight_bytes += head.packed.bytes();
  MatmulTask task = last.task(0, count);
  const Span1 groups = lane.share_of(last, 0);
  const int stretch = head_stretch(logit_rows.size());
  for (int first = groups.begin; first < groups.end; first += stretch) {
    const int end = std::min(first + stretch, groups.end);
    task.next = end < groups.end ? head.packed.stretch(end, groups.end, kFetchAhead)
                                 : lane.first_weights(query_key_value, 0);  // of the next level
    kernels.matmul(task, first, end);
    look_at_logits(first, end, count);
  }
  pool.barrier();
  if (weights.tokens.empty()) return;
  // A row of a map says nothing of where its neighbours' ids are: the largest are taken once all are there.
  const Span1 own = lane.share_of(count);
  const auto vocab = static_cast<std::size_t>(block.vocab);
  for (int j = own.begin; j < own.end; ++j)
    (void)kernels.group_maxima(full_logits + j * vocab, block.vocab,
                               maxima + j * ((vocab + kGroupOutputs - 1) / kGroupOutputs));
  pool.barrier();
}

void HeadContext::Pass::look_at_logits(int begin, int end, int count) {
  const int first = begin * kGroupOutputs;
  const int size = std::min(end * kGroupOutputs, head.packed.outputs) - first;
  for (int j = 0; j < count; ++j) {
    const float* from = head_out + static_cast<std::size_t>(j) * head_stride + first;
    float* best = group_best + static_cast<std::size_t>(j) * (head_stride / kGroupOutputs) + begin;
    if (!kernels.group_maxima(from, size, best)) bad.store(true);
    if (weights.tokens.empty()) continue;
    const Token* ids = weights.tokens.data() + first;
    float* to = full_logits + static_cast<std::size_t>(j) * static_cast<std::size_t>(block.vocab);
    for (int i = 0; i < size; ++i) to[ids[i]] = from[i];
  }
}

void HeadContext::Pass::quantise(const Inputs& to, std::size_t at, int count, bool wanted) {
  if (!to.quantise(kernels, at, count, wanted)) bad.store(true);
}

void HeadContext::Pass::multiply(const Products& products, const Products& then, int count,
                                 const Lane& lane) {
  for (int i = 0; i < products.count; ++i) {
    if (lane.thread == 0) weight_bytes += products.items[i].weights->packed.bytes();
    const Span1 mine = lane.share_of(products, i);
    if (mine.begin >= mine.end) continue;
    MatmulTask task = products.task(i, count);
    task.next = lane.first_weights(products, i + 1);
    if (task.next.runs == 0) task.next = lane.first_weights(then, 0);
    kernels.matmul(task, mine.begin, mine.end);
  }
  pool.barrier();
}

}  // namespace coppice::core
