// A context's memory, and what happens around a pass: rows are resolved to places in the cache before it,
// counted and committed after it.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "model/rope.h"
#include "model/workspace.h"

namespace coppice::core {
namespace {

constexpr int blocks_of(int positions) { return (positions + kBlockPositions - 1) / kBlockPositions; }
Status check_options(const ContextOptions& options, int layers) {
  if (options.max_rows < 1 || options.max_rows > 65536)
    return fail(fmt::format("max_rows is {}, but must be from 1 to 65536", options.max_rows));
  if (options.max_logits < 0 || options.max_logits > options.max_rows)
    return fail(fmt::format("max_logits is {}, but must be from 0 to max_rows ({})", options.max_logits,
                            options.max_rows));
  if (options.feature_layers.size() > kMaxFeatureLayers)
    return fail(fmt::format("feature_layers names {} layers, but at most {} are possible",
                            options.feature_layers.size(), kMaxFeatureLayers));
  for (const int layer : options.feature_layers)
    if (layer < 0 || layer > layers)
      return fail(
          fmt::format("feature layer {} is not there; this model has 0 (where the first block begins) to {} "
                      "(behind the last)",
                      layer, layers));
  const AttentionWindow& window = options.window;
  if (window.recent != 0 && window.recent < AttentionWindow::kLeastRecent)
    return fail(fmt::format("the attention window is {} positions, but must be at least {}, or 0 for none",
                            window.recent, AttentionWindow::kLeastRecent));
  if (window.sink < 0) return fail("the first positions a window keeps are fewer than none");
  return {};
}

}  // namespace

Context::Workspace::Workspace(const Model& model_, const ContextOptions& options_, KvCache& cache_,
                              ThreadPool& pool_)
    : model(model_),
      config(model_.config()),
      options(options_),
      kernels(core::kernels()),
      cache(cache_),
      pool(pool_) {
  q_width = config.heads * config.head_dim;
  kv_width = config.kv_heads * config.head_dim;
  // Separate matrices write whole groups of outputs, so each starts on one.
  const auto aligned = [](int width) { return static_cast<int>(round_up(width, kGroupOutputs)); };
  k_offset = config.fused_qkv ? q_width : aligned(q_width);
  v_offset = config.fused_qkv ? q_width + kv_width : aligned(q_width) + aligned(kv_width);
  qkv_stride = round_up(v_offset + kv_width, kGroupOutputs);
  ff_stride = round_up(config.feed_forward, kGroupOutputs);
  gate_stride = ff_stride;
  if (config.fused_gate_up) gate_stride = ff_stride = round_up(2 * config.feed_forward, kGroupOutputs);
  out_stride = round_up(config.hidden, kGroupOutputs);
  router_stride = round_up(config.experts, kGroupOutputs);
  head_stride = static_cast<std::size_t>(model.weights().head().packed.groups()) * kGroupOutputs;
  use(model.variants()[model.whole()]);
  constexpr double kLog2E = 1.4426950408889634;
  const double scale = config.attention_scale > 0 ? kLog2E * config.attention_scale
                                                  : kLog2E / std::sqrt(static_cast<double>(config.head_dim));
  query_scale = static_cast<float>(config.score_cap > 0 ? 2 * scale / config.score_cap : scale);
  score_cap = static_cast<float>(kLog2E * config.score_cap);
  attention_floats = round_up(attention_workspace(cache.layout()), 16);
  // Where a window does not begin with a block, it sees that one and the last one in part.
  const AttentionWindow& window = options.window;
  if (window.recent > 0)
    window_blocks = blocks_of(std::min(window.sink, options.kv.positions)) +
                    blocks_of(std::min(window.recent, options.kv.positions)) + 2;
}

void Context::Workspace::use(const Variant& variant) {
  weights = &variant.weights;
  hidden = variant.hidden;
  feed_forward = variant.feed_forward;
  blocks = variant.blocks;
}

Status Context::Workspace::allocate() {
  const auto n = static_cast<std::size_t>(options.max_rows);
  const auto logits = static_cast<std::size_t>(options.max_logits);
  const std::size_t places = n * std::max<std::size_t>(1, used());  // rows of the feed-forward part
  const std::size_t full = weights->head_tokens.empty() ? 0 : logits * static_cast<std::size_t>(config.vocab);
  const auto lay_out = [&](Arena arena) {
    arena.take(x, n * config.hidden);
    normed.take(arena, n, std::max(config.hidden, q_width));
    activated.take(arena, places, config.feed_forward);
    arena.take(qkv, n * qkv_stride);
    arena.take(gate, gated(config.activation) ? places * gate_stride : 0);
    arena.take(up, config.fused_gate_up ? 0 : places * ff_stride);
    if (config.experts > 0) {
      arena.take(router_out, n * router_stride);
      arena.take(expert_out, places * out_stride);
      gathered.take(arena, places, config.hidden);
    }
    arena.take(out, n * out_stride);
    arena.take(head_out, logits * head_stride);
    arena.take(maxima, logits * (head_stride / kGroupOutputs));
    arena.take(full_logits, full);
    arena.take(features, n * options.feature_layers.size() * config.hidden);
    arena.take(cos_sin, n * config.rope_dims);
    arena.take(window_cos_sin, config.window_rope_base > 0 ? n * config.rope_dims : 0);
    arena.take(attention, attention_floats * pool.size());
    arena.take(row_slots, n * cache.slots());
    arena.take(window_tables, n * window_blocks);
    return arena.used();
  };
  const std::size_t bytes = lay_out(Arena(nullptr));
  if (bytes > memory_available())
    return fail(
        fmt::format("passes of {} rows with {} rows of logits need {} bytes of memory, but {} are available",
                    options.max_rows, options.max_logits, bytes, memory_available()));
  COPPICE_TRY(memory, Buffer::make(bytes));
  lay_out(Arena(memory.data()));
  if (config.fused_gate_up) up = gate + config.feed_forward;
  std::fill(full_logits, full_logits + full, -std::numeric_limits<float>::infinity());

  if (config.experts > 0) {
    choices.resize(places);
    place_of.resize(places);
    choice_at.resize(places);
    first_place.resize(static_cast<std::size_t>(config.experts) + 1);
    next_place.resize(first_place.size());
  }
  const auto sequences = static_cast<std::size_t>(options.kv.sequences);
  committed.resize(n);
  unseen.resize(n);
  tables.resize(n);
  attention_rows.resize(n);
  wanted_rows.resize(n);
  logit_index.resize(n);
  feature_index.resize(n);
  every_row.resize(n);
  std::iota(every_row.begin(), every_row.end(), 0);
  new_rows.resize(sequences);
  views.resize(sequences);
  seen.resize(sequences * static_cast<std::size_t>(cache.slots()));
  if (config.positions == Positions::rope) make_rope();
  return {};
}

void Context::Workspace::make_rope() {
  const auto pairs = static_cast<std::size_t>(config.rope_dims / 2);
  frequencies.resize(pairs);
  rope_frequencies(config.rope_base, config.rope_dims, frequencies.data());
  const RopeFactors& given = weights->rope_factors;
  const int longest = options.longest > 0 ? options.longest : options.kv.positions;
  const WeightVector& by_length =
      longest > config.rope_scaling.original_context ? given.longer : given.shorter;
  for (const WeightVector* factors : {&given.all, &by_length})
    for (std::size_t i = 0; i < factors->size; ++i) frequencies[i] /= static_cast<double>(factors->data()[i]);
  scale_frequencies(config.rope_scaling, config.rope_base, config.rope_dims, frequencies.data());
  if (config.window_rope_base == 0) return;
  window_frequencies.resize(pairs);
  rope_frequencies(config.window_rope_base, config.rope_dims, window_frequencies.data());
}

// Finds what row `index` sees, and counts the slots that nobody else of this pass saw before.
void Context::Workspace::resolve_row(int index) {
  const Row& row = rows[index];
  const auto stride = static_cast<std::size_t>(cache.slots());
  std::int32_t* slots = row_slots + static_cast<std::size_t>(index) * stride;
  const RowView view = view_of(row, cache, new_rows[row.sequence], slots);
  committed[index] = view.committed;
  for (int i = 0; i < view.slots; ++i) {
    std::uint64_t& counted = seen[static_cast<std::size_t>(row.sequence) * stride + slots[i]];
    if (counted != pass_number) ++kv_bytes;  // positions for now
    counted = pass_number;
  }
}

// What a row sees, once all rows of the pass have their places: every position below it, or a window of them.
// That depends on its position only (law 2).
void Context::Workspace::narrow_view(int index) {
  const Row& row = rows[index];
  tables[index] = cache.table(row.sequence);
  unseen[index] = 0;
  const AttentionWindow& window = options.window;
  const int sinks = blocks_of(window.sink);
  const int first = std::min(row.position + 1 - window.recent, committed[index]) / kBlockPositions;
  if (window.recent == 0 || first <= sinks) return;
  unseen[index] = (first - sinks) * kBlockPositions;
  if (index > 0 && rows[index - 1].sequence == row.sequence && unseen[index - 1] == unseen[index]) {
    tables[index] = tables[index - 1];
    return;
  }
  std::int32_t* table = window_tables + static_cast<std::size_t>(index) * window_blocks;
  const int end = blocks_of(cache.length(row.sequence) + new_rows[row.sequence]);
  const int recent = std::min(window_blocks - sinks, end - first);
  std::copy_n(tables[index], sinks, table);
  std::copy_n(tables[index] + first, recent, table + sinks);
  tables[index] = table;
}

// Positions of a view are counted without those its window leaves out.
int Context::Workspace::first_seen(int index) const {
  const int first = std::max(0, rows[index].position + 1 - config.window);
  const int sinks = blocks_of(options.window.sink) * kBlockPositions;
  if (unseen[index] == 0 || first <= sinks) return first;
  return std::max(sinks, first - unseen[index]);
}

void Context::Workspace::resolve(std::span<const Row> pass) {
  COPPICE_CHECK(pass.size() <= every_row.size());
  rows = pass;
  ++pass_number;
  weight_bytes = kv_bytes = 0;
  logit_count = wanted_count = feature_count = 0;
  bad_stage.store(INT_MAX);
  std::fill(new_rows.begin(), new_rows.end(), 0);
  unsigned of_last_block = kLogits | kHidden;  // what no row has before the last block is done
  if (std::ranges::count(options.feature_layers, config.layers) > 0) of_last_block |= kFeatures;
  std::fill(views.begin(), views.end(), Seen{});
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    const Row& row = rows[i];
    COPPICE_CHECK(row.sequence >= 0 && row.sequence < options.kv.sequences);
    COPPICE_CHECK(row.token >= 0 && row.token < config.vocab && row.position >= 0);
    COPPICE_CHECK(config.positions == Positions::rope || row.position < config.context_length);
    resolve_row(i);
    if ((row.wants & of_last_block) != 0) wanted_rows[wanted_count++] = i;
    feature_index[i] = (row.wants & kFeatures) != 0 ? feature_count++ : -1;
    logit_index[i] = (row.wants & kLogits) != 0 ? logit_count++ : -1;
  }
  COPPICE_CHECK(logit_count <= options.max_logits);
  COPPICE_CHECK(feature_count == 0 || !options.feature_layers.empty());
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    const int length = cache.length(rows[i].sequence) + new_rows[rows[i].sequence];
    COPPICE_CHECK(committed[i] >= 0 && committed[i] <= length);
    narrow_view(i);
    Seen& view = views[rows[i].sequence];
    view.end = std::max(view.end, committed[i]);
    view.left_out = std::min(view.left_out, unseen[i]);
    view.begin = std::min(view.begin, unseen[i] + first_seen(i));
  }
  std::uint64_t windowed = 0;
  for (int layer = 0; layer < blocks; ++layer) windowed += config.has_window(layer) ? 1 : 0;
  const auto layers = static_cast<std::uint64_t>(blocks);
  kv_bytes *= layers;
  for (const Seen& view : views)
    if (view.end > 0)
      kv_bytes +=
          (layers - windowed) * static_cast<std::uint64_t>(view.end - view.left_out) +
          windowed * static_cast<std::uint64_t>(view.end - std::clamp(view.begin, view.left_out, view.end));
  kv_bytes *= cache.layout().block_bytes() / kBlockPositions;
  weight_bytes = weights->embedding.packed.group_bytes() / kGroupOutputs * rows.size();
}

Context::Context(std::shared_ptr<const Model> model, const ContextOptions& options, ThreadPool& pool,
                 KvCache cache)
    : model_(std::move(model)),
      options_(options),
      pool_(pool),
      cache_(std::move(cache)),
      work_(std::make_unique<Workspace>(*model_, options_, cache_, pool_)) {}

Context::~Context() = default;

Result<std::unique_ptr<Context>> Context::make(std::shared_ptr<const Model> model,
                                               const ContextOptions& options, ThreadPool& pool) {
  COPPICE_TRY_STATUS(check_options(options, model->config().layers));
  DefaultFloatScope scope;  // RoPE's frequencies
  const ModelConfig& config = model->config();
  KvLayout layout;
  layout.type = options.kv.type;
  layout.kv_heads = config.kv_heads;
  layout.heads = config.heads;
  layout.head_dim = config.head_dim;
  COPPICE_TRY(KvCache cache, KvCache::make(layout, config.layers, options.kv));
  std::unique_ptr<Context> context(new Context(std::move(model), options, pool, std::move(cache)));
  COPPICE_TRY_STATUS(context->work_->allocate());
  return context;
}

void Context::set_variant(int variant) {
  COPPICE_CHECK(variant >= 0 && static_cast<std::size_t>(variant) < model_->variants().size());
  work_->use(model_->variants()[variant]);
}

Status Context::forward(std::span<const Row> rows) {
  if (rows.empty()) return {};
  const double start = seconds();
  Workspace& work = *work_;
  work.resolve(rows);
  work.tap = tap_;
  work.clock = clock_;
  work.clock_time = start;
  pool_.run([&work](int thread) { work.run(thread); });
  stats_.passes += 1;
  stats_.rows += rows.size();
  stats_.weight_bytes += work.weight_bytes;
  stats_.kv_bytes += work.kv_bytes;
  stats_.seconds += seconds() - start;
  if (const int stage = work.bad_stage.load(); stage != INT_MAX) {
    const std::string where =
        stage < model_->config().layers ? fmt::format("layer {}", stage) : "the output head";
    return fail(
        fmt::format("{}: a value in {} is not finite; the weights, or the activations they make, are too "
                    "large for this format",
                    model_->path(), where));
  }
  for (int sequence = 0; sequence < options_.kv.sequences; ++sequence)
    if (work.new_rows[sequence] > 0) cache_.commit(sequence, work.new_rows[sequence]);
  return {};
}

std::span<const float> Context::logits(int row) const {
  COPPICE_CHECK(row >= 0 && static_cast<std::size_t>(row) < work_->rows.size() &&
                work_->logit_index[row] >= 0);
  const auto index = static_cast<std::size_t>(work_->logit_index[row]);
  const auto vocab = static_cast<std::size_t>(model_->config().vocab);
  if (work_->weights->head_tokens.empty()) return {work_->head_out + index * work_->head_stride, vocab};
  return {work_->full_logits + index * vocab, vocab};
}

std::span<const float> Context::maxima(int row) const {
  COPPICE_CHECK(row >= 0 && static_cast<std::size_t>(row) < work_->rows.size() &&
                work_->logit_index[row] >= 0);
  if (!work_->weights->head_tokens.empty()) return {};
  const std::size_t groups = work_->head_stride / kGroupOutputs;
  return {work_->maxima + static_cast<std::size_t>(work_->logit_index[row]) * groups, groups};
}

std::span<const float> Context::hidden(int row) const {
  COPPICE_CHECK(row >= 0 && static_cast<std::size_t>(row) < work_->rows.size());
  const auto hidden = static_cast<std::size_t>(work_->hidden);
  return {work_->x + static_cast<std::size_t>(row) * hidden, hidden};
}

std::span<const float> Context::features(int row) const {
  COPPICE_CHECK(row >= 0 && static_cast<std::size_t>(row) < work_->rows.size() &&
                work_->feature_index[row] >= 0);
  const std::size_t count = options_.feature_layers.size() * static_cast<std::size_t>(work_->hidden);
  return {work_->features + static_cast<std::size_t>(work_->feature_index[row]) * count, count};
}

std::span<const char* const> PassClock::names() {
  static constexpr const char* kNames[kStages] = {"norm and quantise",
                                                  "query, key, value",
                                                  "RoPE, store K and V",
                                                  "attention",
                                                  "attention output",
                                                  "gate, up, activation",
                                                  "down",
                                                  "head",
                                                  "other"};
  return kNames;
}

std::size_t Context::bytes() const { return cache_.bytes() + work_->memory.size(); }

}  // namespace coppice::core
