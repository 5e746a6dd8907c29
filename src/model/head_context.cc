// A head's memory, and what happens around a pass: rows are resolved to places in the cache before it,
// counted and committed after it. As context.cc, for one block.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "model/head_pass.h"
#include "model/rope.h"

namespace coppice::core {

HeadContext::Pass::Pass(const HeadModel& model, const ContextOptions& options_, KvCache& cache_,
                        ThreadPool& pool_)
    : config(model.config()),
      block(model.config().block),
      weights(model.weights()),
      embedding(model.embedding()),
      head(model.output()),
      options(options_),
      kernels(core::kernels()),
      cache(cache_),
      pool(pool_) {
  hidden = block.hidden;
  q_width = block.heads * block.head_dim;
  kv_width = block.kv_heads * block.head_dim;
  const auto aligned = [](int width) { return static_cast<int>(round_up(width, kGroupOutputs)); };
  k_offset = aligned(q_width);
  v_offset = k_offset + aligned(kv_width);
  qkv_stride = static_cast<std::size_t>(v_offset + aligned(kv_width));
  ff_stride = round_up(block.feed_forward, kGroupOutputs);
  out_stride = round_up(hidden, kGroupOutputs);
  head_stride = static_cast<std::size_t>(head.packed.groups()) * kGroupOutputs;
  query_scale = static_cast<float>(1.4426950408889634 / std::sqrt(static_cast<double>(block.head_dim)));
  attention_floats = round_up(attention_workspace(cache.layout()), 16);
}

Status HeadContext::Pass::allocate() {
  const auto n = static_cast<std::size_t>(options.max_rows);
  const auto logits = static_cast<std::size_t>(options.max_logits);
  const auto vocab = static_cast<std::size_t>(block.vocab);
  const auto threads = static_cast<std::size_t>(pool.size());
  const std::size_t full = weights.tokens.empty() ? 0 : logits * vocab;
  const auto lay_out = [&](Arena arena) {
    arena.take(x, n * hidden);
    fused.take(arena, n, config.features());
    normed.take(arena, n, std::max(2 * hidden, q_width));
    activated.take(arena, n, block.feed_forward);
    arena.take(qkv, n * qkv_stride);
    arena.take(gate, n * ff_stride);
    arena.take(up, n * ff_stride);
    arena.take(out, n * out_stride);
    arena.take(token, threads * hidden);
    arena.take(head_out, logits * head_stride);
    arena.take(group_best, logits * (head_stride / kGroupOutputs));
    arena.take(full_logits, full);
    arena.take(maxima, full == 0 ? 0 : logits * ((vocab + kGroupOutputs - 1) / kGroupOutputs));
    arena.take(cos_sin, n * block.rope_dims);
    arena.take(attention, attention_floats * threads);
    arena.take(row_slots, n * cache.slots());
    return arena.used();
  };
  const std::size_t bytes = lay_out(Arena(nullptr));
  if (bytes > memory_available())
    return fail(
        fmt::format("passes of a draft head over {} rows need {} bytes of memory, but {} are available",
                    options.max_rows, bytes, memory_available()));
  COPPICE_TRY(memory, Buffer::make(bytes));
  lay_out(Arena(memory.data()));
  fusing.inputs = &fused;
  down.inputs = &activated;
  for (Products* products : {&query_key_value, &attention_output, &gate_up, &last})
    products->inputs = &normed;
  fusing.add(weights.fc, out, out_stride);
  query_key_value.add(weights.query, qkv, qkv_stride);
  query_key_value.add(weights.key, qkv + k_offset, qkv_stride);
  query_key_value.add(weights.value, qkv + v_offset, qkv_stride);
  attention_output.add(weights.attention_output, out, out_stride);
  gate_up.add(weights.gate, gate, ff_stride);
  gate_up.add(weights.up, up, ff_stride);
  down.add(weights.down, out, out_stride);
  last.add(head, head_out, head_stride);
  std::fill_n(full_logits, full, -std::numeric_limits<float>::infinity());
  committed.resize(n);
  fused_row.resize(n);
  logit_index.resize(n);
  attention_rows.resize(n);
  with_features.reserve(n);
  live.reserve(n);
  logit_rows.reserve(n);
  new_rows.resize(static_cast<std::size_t>(options.kv.sequences));
  visible.resize(static_cast<std::size_t>(options.kv.sequences));
  frequencies.resize(static_cast<std::size_t>(block.rope_dims / 2));
  rope_frequencies(block.rope_base, block.rope_dims, frequencies.data());
  return {};
}

// Finds what row `index` sees.
void HeadContext::Pass::resolve_row(int index) {
  const Row& row = rows[index].row;
  std::int32_t* slots = row_slots + static_cast<std::size_t>(index) * cache.slots();
  const RowView view = view_of(row, cache, new_rows[row.sequence], slots);
  committed[index] = view.committed;
  kv_bytes += static_cast<std::uint64_t>(view.slots);  // positions for now
  visible[row.sequence] = std::max(visible[row.sequence], committed[index]);
}

void HeadContext::Pass::resolve(std::span<const HeadRow> pass) {
  COPPICE_CHECK(pass.size() <= committed.size());
  rows = pass;
  weight_bytes = kv_bytes = 0;
  bad.store(false);
  with_features.clear();
  live.clear();
  logit_rows.clear();
  std::fill(new_rows.begin(), new_rows.end(), 0);
  std::fill(visible.begin(), visible.end(), 0);
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    const HeadRow& row = rows[i];
    COPPICE_CHECK(row.row.sequence >= 0 && row.row.sequence < options.kv.sequences);
    COPPICE_CHECK(row.row.token >= 0 && row.row.token < block.vocab && row.row.position >= 0);
    COPPICE_CHECK(row.position >= 0 && (row.features != nullptr || row.hidden != nullptr));
    resolve_row(i);
    fused_row[i] = row.features != nullptr ? static_cast<int>(with_features.size()) : -1;
    if (row.features != nullptr) with_features.push_back(i);
    logit_index[i] = (row.row.wants & kLogits) != 0 ? static_cast<int>(logit_rows.size()) : -1;
    if (logit_index[i] >= 0) logit_rows.push_back(static_cast<int>(live.size()));
    if (row.row.wants != kNothing) live.push_back(i);
  }
  COPPICE_CHECK(static_cast<int>(logit_rows.size()) <= options.max_logits);
  for (const int positions : visible) kv_bytes += static_cast<std::uint64_t>(positions);
  kv_bytes *= cache.layout().block_bytes() / kBlockPositions;
  weight_bytes = embedding.group_bytes() / kGroupOutputs * rows.size();
}

HeadContext::HeadContext(std::shared_ptr<const HeadModel> model, const ContextOptions& options,
                         ThreadPool& pool, KvCache cache)
    : model_(std::move(model)),
      options_(options),
      pool_(pool),
      cache_(std::move(cache)),
      pass_(std::make_unique<Pass>(*model_, options_, cache_, pool_)) {}

HeadContext::~HeadContext() = default;

Result<std::unique_ptr<HeadContext>> HeadContext::make(std::shared_ptr<const HeadModel> model,
                                                       const ContextOptions& options, ThreadPool& pool) {
  COPPICE_CHECK(options.max_rows >= 1 && options.max_logits >= 0 && options.max_logits <= options.max_rows);
  DefaultFloatScope scope;  // RoPE's frequencies
  const ModelConfig& block = model->config().block;
  KvLayout layout;
  layout.type = options.kv.type;
  layout.kv_heads = block.kv_heads;
  layout.heads = block.heads;
  layout.head_dim = block.head_dim;
  COPPICE_TRY(KvCache cache, KvCache::make(layout, 1, options.kv));
  std::unique_ptr<HeadContext> context(new HeadContext(std::move(model), options, pool, std::move(cache)));
  COPPICE_TRY_STATUS(context->pass_->allocate());
  return context;
}

Status HeadContext::forward(std::span<const HeadRow> rows) {
  if (rows.empty()) return {};
  const double start = seconds();
  Pass& pass = *pass_;
  pass.resolve(rows);
  pool_.run([&pass](int thread) { pass.run(thread); });
  stats_.passes += 1;
  stats_.rows += rows.size();
  stats_.weight_bytes += pass.weight_bytes;
  stats_.kv_bytes += pass.kv_bytes;
  stats_.seconds += seconds() - start;
  if (pass.bad.load())
    return fail(
        fmt::format("{}: a value of the draft head is not finite; its weights, or the activations they "
                    "make, are too large for this format",
                    model_->path()));
  for (int sequence = 0; sequence < options_.kv.sequences; ++sequence)
    if (pass.new_rows[sequence] > 0) cache_.commit(sequence, pass.new_rows[sequence]);
  return {};
}

std::span<const float> HeadContext::logits(int row) const {
  const Pass& p = *pass_;
  COPPICE_CHECK(row >= 0 && static_cast<std::size_t>(row) < p.rows.size() && p.logit_index[row] >= 0);
  const auto index = static_cast<std::size_t>(p.logit_index[row]),
             vocab = static_cast<std::size_t>(p.block.vocab);
  return p.weights.tokens.empty() ? std::span<const float>(p.head_out + index * p.head_stride, vocab)
                                  : std::span<const float>(p.full_logits + index * vocab, vocab);
}

std::span<const float> HeadContext::maxima(int row) const {
  const Pass& p = *pass_;
  COPPICE_CHECK(row >= 0 && static_cast<std::size_t>(row) < p.rows.size() && p.logit_index[row] >= 0);
  const auto index = static_cast<std::size_t>(p.logit_index[row]);
  const auto groups = (static_cast<std::size_t>(p.block.vocab) + kGroupOutputs - 1) / kGroupOutputs;
  const float* of = p.weights.tokens.empty() ? p.group_best : p.maxima;
  return {of + index * groups, groups};
}

std::span<const float> HeadContext::hidden(int row) const {
  const Pass& p = *pass_;
  COPPICE_CHECK(row >= 0 && static_cast<std::size_t>(row) < p.rows.size() &&
                p.rows[row].row.wants != kNothing);
  return {p.residual(row), static_cast<std::size_t>(p.hidden)};
}

std::size_t HeadContext::bytes() const { return cache_.bytes() + pass_->memory.size(); }

}  // namespace coppice::core
