// One pass, as every thread runs it. A layer is nine stages with a barrier after each:
//
//   (add,) norm, quantise | q, k, v | RoPE, store K and V | attention, quantise | output
//   add, norm, quantise | gate, up | activation, quantise | down | (the next layer adds it)
//
// Matmuls are split by groups of 32 outputs, attention by (row, KV head), the rest by rows or by stretches of
// 32 values. No split changes a bit: each value is computed by one thread in one fixed order (numerics 7-11).
// In the last layer only rows whose output somebody wants go on once K and V are stored.
#include <algorithm>
#include <climits>
#include <cstring>

#include "base/check.h"
#include "model/rope.h"
#include "model/workspace.h"

namespace coppice::core {
namespace {

bool all_finite(const float* x, std::size_t n) {
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    bad |= static_cast<std::uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
  }
  return bad == 0;
}

bool any_quantised(std::span<const WeightMatrix> matrices) {
  return std::any_of(matrices.begin(), matrices.end(),
                     [](const WeightMatrix& matrix) { return matrix.packed.quantised(); });
}

}  // namespace

void Context::Workspace::run(int thread) {
  Lane lane{thread, pool.size(), 0, {every_row.data(), rows.size()}};
  embed(lane);
  for (; lane.stage < config.layers; ++lane.stage) {
    layer(lane);
    if (lane.live.empty()) return;  // nobody wants what this pass would say
  }
  head(lane);
}

void Context::Workspace::embed(const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(rows.size()));
  for (int i = mine.begin; i < mine.end; ++i) {
    float* row = x + static_cast<std::size_t>(i) * config.hidden;
    unpack_row(weights.embedding.packed, rows[i].token, row);
    if (config.positions == Positions::learned)
      kernels.add(weights.positions.data() + static_cast<std::size_t>(rows[i].position) * config.hidden, row,
                  config.hidden);
    else
      rope_row(rows[i].position, frequencies.data(), config.rope_dims,
               cos_sin + static_cast<std::size_t>(i) * config.rope_dims);
  }
  // No barrier: the first norm is split by the same rows.
}

void Context::Workspace::layer(Lane& lane) {
  const LayerWeights& layer = weights.layers[lane.stage];
  const WeightMatrix* added = lane.stage == 0 ? nullptr : &weights.layers[lane.stage - 1].down;
  norm_rows(added, layer.attention_norm, any_quantised(layer.query_key_value), lane);
  show_residual(lane);
  const auto& matrices = layer.query_key_value;
  Product products[3] = {{&matrices[0], qkv, qkv_stride}};
  if (!config.fused_qkv) {
    products[1] = {&matrices[1], qkv + k_offset, qkv_stride};
    products[2] = {&matrices[2], qkv + v_offset, qkv_stride};
  }
  multiply({products, matrices.size()}, lane);
  store_rows(layer, lane);
  if (lane.stage == config.layers - 1) {
    lane.live = {wanted_rows.data(), static_cast<std::size_t>(wanted_count)};
    if (lane.live.empty()) return;
  }
  attend(layer.attention_output.packed.quantised(), lane);
  const Product output[] = {{&layer.attention_output, out, out_stride}};
  multiply(output, lane);

  norm_rows(&layer.attention_output, layer.feed_forward_norm, any_quantised(layer.gate_up), lane);
  const bool gated = layer.gate_up.size() == 2;
  const Product gate_up[] = {{&layer.gate_up.back(), up, ff_stride}, {&layer.gate_up[0], gate, ff_stride}};
  multiply({gate_up, gated ? std::size_t{2} : std::size_t{1}}, lane);
  activate(layer, lane);
  const Product down[] = {{&layer.down, out, out_stride}};
  multiply(down, lane);
}

void Context::Workspace::head(const Lane& lane) {
  finish_rows(lane);
  show_residual(lane);
  if (logit_count == 0) return;
  Lane logits = lane;
  logits.live = {every_row.data(), static_cast<std::size_t>(logit_count)};
  const Product product[] = {{&weights.head(), head_out, head_stride}};
  multiply(product, logits);
  scatter_logits(logits);
}

// ---- norms and the residual stream

void Context::Workspace::add_residual(const WeightMatrix& matrix, int row, std::size_t live_row) {
  float* add = out + live_row * out_stride;
  if (matrix.bias.size > 0) kernels.add(matrix.bias.data(), add, config.hidden);
  kernels.add(add, x + static_cast<std::size_t>(row) * config.hidden, config.hidden);
}

void Context::Workspace::norm(const NormWeights& norm, const float* from, float* to) const {
  if (config.norm == Norm::rms)
    kernels.rms_norm(from, norm.weight.data(), config.norm_eps, config.hidden, to);
  else
    kernels.layer_norm(from, norm.weight.data(), norm.bias.data(), config.norm_eps, config.hidden, to);
}

void Context::Workspace::norm_rows(const WeightMatrix* added, const NormWeights& norm_weights, bool quantise,
                                   const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(lane.live.size()));
  for (int j = mine.begin; j < mine.end; ++j) {
    const std::size_t at = static_cast<std::size_t>(j) * config.hidden;
    if (added != nullptr) add_residual(*added, lane.live[j], j);
    norm(norm_weights, x + static_cast<std::size_t>(lane.live[j]) * config.hidden, inputs + at);
    quantise_stretch(at, config.hidden, quantise, lane.stage);
  }
  pool.barrier();
}

void Context::Workspace::show_residual(const Lane& lane) {
  if (tap == nullptr) return;
  if (lane.thread == 0) tap->residual(lane.stage, x, static_cast<int>(rows.size()));
  pool.barrier();
}

// The last block's output joins the residual stream; rows that want logits are normed for the head.
void Context::Workspace::finish_rows(const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(lane.live.size()));
  for (int j = mine.begin; j < mine.end; ++j) {
    const int row = lane.live[j];
    const float* residual = x + static_cast<std::size_t>(row) * config.hidden;
    add_residual(weights.layers.back().down, row, j);
    if (!all_finite(residual, config.hidden)) not_finite(lane.stage - 1);
    if (logit_index[row] < 0) continue;
    const std::size_t at = static_cast<std::size_t>(logit_index[row]) * config.hidden;
    norm(weights.output_norm, residual, inputs + at);
    quantise_stretch(at, config.hidden, weights.head().packed.quantised(), lane.stage);
  }
  pool.barrier();
}

// ---- attention

void Context::Workspace::store_rows(const LayerWeights& layer, const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(rows.size()));
  for (int i = mine.begin; i < mine.end; ++i) {
    const Row& row = rows[i];
    float* q = qkv + static_cast<std::size_t>(i) * qkv_stride;
    float* k = q + k_offset;
    float* v = q + v_offset;
    if (config.biases && config.fused_qkv)
      kernels.add(layer.query_key_value[0].bias.data(), q, q_width + 2 * kv_width);
    if (config.positions == Positions::rope) {
      const float* angles = cos_sin + static_cast<std::size_t>(i) * config.rope_dims;
      for (int h = 0; h < config.heads; ++h) kernels.rope(q + h * config.head_dim, angles, config.rope_dims);
      for (int h = 0; h < config.kv_heads; ++h)
        kernels.rope(k + h * config.head_dim, angles, config.rope_dims);
    }
    kernels.scale(query_scale, q, q_width);
    const bool commits = row.slot == kCommitted;
    const int place = commits ? row.position : row.slot;
    std::byte* block = commits ? cache.committed_block(row.sequence, lane.stage, place)
                               : cache.scratch_block(row.sequence, lane.stage, place);
    kernels.store_kv(cache.layout(), k, v, block, place % kBlockPositions);
  }
  pool.barrier();
}

// The thread that made an output also quantises it, unless a group of 32 spans the outputs of two KV heads.
void Context::Workspace::attend(bool quantise, const Lane& lane) {
  const int head_group = q_width / config.kv_heads;  // outputs of one KV head
  const bool groups_end_with_heads = head_group % kBlockInputs == 0;
  const Span1 mine = lane.share_of(static_cast<int>(lane.live.size()) * config.kv_heads);
  for (int item = mine.begin; item < mine.end;) {
    const int j = item / config.kv_heads, first = item % config.kv_heads;
    const int last = std::min(config.kv_heads, first + mine.end - item);
    const int i = lane.live[j];
    AttentionRow row;
    row.q = qkv + static_cast<std::size_t>(i) * qkv_stride;
    row.out = inputs + static_cast<std::size_t>(j) * q_width;
    row.position = rows[i].position;
    row.committed = committed[i];
    row.table = cache.table(rows[i].sequence);
    row.blocks = cache.layer_blocks(lane.stage);
    row.block_stride = cache.block_stride();
    row.slots = row_slots + static_cast<std::size_t>(i) * cache.slots();
    row.scratch = cache.layer_scratch(rows[i].sequence, lane.stage);
    row.scratch_stride = cache.scratch_stride();
    row.workspace = attention + static_cast<std::size_t>(lane.thread) * attention_floats;
    kernels.attention(cache.layout(), row, first, last);
    if (groups_end_with_heads)
      quantise_stretch(static_cast<std::size_t>(j) * q_width + first * head_group,
                       (last - first) * head_group, quantise, lane.stage);
    item += last - first;
  }
  pool.barrier();
  if (!groups_end_with_heads) quantise_rows(quantise, lane);
}

// ---- what matmuls read

void Context::Workspace::not_finite(int stage) {
  int before = bad_stage.load();
  while (stage < before && !bad_stage.compare_exchange_weak(before, stage)) {
  }
}

void Context::Workspace::quantise_stretch(std::size_t at, int count, bool quantise, int stage) {
  const std::size_t group = at / kBlockInputs;
  const bool finite = quantise ? kernels.quantize_row(inputs + at, count, codes + at, scales + group,
                                                      scaled_sums + group, sums + group)
                               : all_finite(inputs + at, count);
  if (!finite) not_finite(stage);
}

// All of attention's output, in stretches that need not end with a row: groups of 32 know nothing of rows.
void Context::Workspace::quantise_rows(bool quantise, const Lane& lane) {
  const Span1 groups = lane.share_of(static_cast<int>(lane.live.size()) * (q_width / kBlockInputs));
  if (groups.end > groups.begin)
    quantise_stretch(static_cast<std::size_t>(groups.begin) * kBlockInputs,
                     (groups.end - groups.begin) * kBlockInputs, quantise, lane.stage);
  pool.barrier();
}

void Context::Workspace::activate(const LayerWeights& layer, const Lane& lane) {
  const int per_row = config.feed_forward / kBlockInputs;
  const Span1 groups = lane.share_of(static_cast<int>(lane.live.size()) * per_row);
  for (int group = groups.begin; group < groups.end;) {
    const int j = group / per_row, first = group % per_row;
    const int last = std::min(per_row, first + groups.end - group);
    const int column = first * kBlockInputs, count = (last - first) * kBlockInputs;
    float* u = up + static_cast<std::size_t>(j) * ff_stride + column;
    float* to = inputs + static_cast<std::size_t>(j) * config.feed_forward + column;
    if (const WeightVector& bias = layer.gate_up.back().bias; bias.size > 0)
      kernels.add(bias.data() + column, u, count);
    if (config.activation == Activation::silu_gated) {
      float* g = gate + static_cast<std::size_t>(j) * ff_stride + column;
      if (const WeightVector& bias = layer.gate_up[0].bias; bias.size > 0)
        kernels.add(bias.data() + column, g, count);
      kernels.silu_mul(g, u, to, count);
    } else {
      kernels.gelu(u, to, count);
    }
    quantise_stretch(static_cast<std::size_t>(group) * kBlockInputs, count, layer.down.packed.quantised(),
                     lane.stage);
    group += last - first;
  }
  pool.barrier();
}

// ---- matmuls

MatmulTask Context::Workspace::task(const Product& product, int count) const {
  MatmulTask task;
  task.weights = &product.weights->packed;
  task.x = inputs;
  task.q = {codes, scales, scaled_sums, sums, product.weights->packed.inputs};
  task.y = product.y;
  task.y_stride = product.y_stride;
  task.rows = count;
  return task;
}

void Context::Workspace::multiply(std::span<const Product> products, const Lane& lane) {
  const int count = static_cast<int>(lane.live.size());
  int total = 0;
  for (const Product& product : products) total += product.weights->packed.groups();
  const Span1 mine = lane.share_of(total);
  int first = 0;  // number of the product's first group in the stage
  for (const Product& product : products) {
    const PackedMatrix& matrix = product.weights->packed;
    const int begin = std::max(mine.begin - first, 0), end = std::min(mine.end - first, matrix.groups());
    if (begin < end) kernels.matmul(task(product, count), begin, end);
    first += matrix.groups();
    if (lane.thread == 0) weight_bytes += matrix.bytes();
  }
  pool.barrier();
  if (tap == nullptr) return;
  if (lane.thread == 0)
    for (const Product& product : products)
      tap->matmul(product.weights->name.c_str(), task(product, count), inputs);
  pool.barrier();
}

// Checks the logits, and moves a trimmed head's to the full token ids.
void Context::Workspace::scatter_logits(const Lane& lane) {
  const int outputs = weights.head().packed.outputs;
  const Span1 mine = lane.share_of(outputs);
  for (std::size_t j = 0; j < lane.live.size(); ++j) {
    const float* from = head_out + j * head_stride;
    if (!all_finite(from + mine.begin, mine.end - mine.begin)) not_finite(lane.stage);
    if (weights.head_tokens.empty()) continue;
    float* to = full_logits + j * static_cast<std::size_t>(config.vocab);
    for (int i = mine.begin; i < mine.end; ++i) to[weights.head_tokens[i]] = from[i];
  }
}

}  // namespace coppice::core
