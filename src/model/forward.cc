// One pass, as every thread runs it. A layer is eight stages with a barrier after each:
//
//   (add,) norm, quantise | q, k, v | RoPE, store K and V | attention, quantise | output
//   add, norm, quantise | gate, up, activation, quantise | down | (the next layer adds it)
//
// Matmuls are split by groups of 32 outputs, attention by queries (heads of rows), the rest by rows. A thread
// that made columns of gate and up also multiplies and quantises them. No split changes a bit: each value is
// computed by one thread in one fixed order (numerics 7-11). Towards the end of its share a thread fetches
// the weights it reads next, so that memory is not idle between stages. In the last layer only rows whose
// output somebody wants go on once K and V are stored. A variant with an early exit (slim.h) stores K and V
// in the layers above it and does nothing else there. What happens at the head is in head.cc, and where a row
// chooses its experts in experts.cc. A parallel block norms what its feed-forward part reads before it adds
// what attention gave.
#include <algorithm>
#include <climits>

#include "base/check.h"
#include "model/rope.h"
#include "model/workspace.h"

namespace coppice::core {
namespace {

bool any_quantised(std::span<const WeightMatrix> matrices) {
  return std::any_of(matrices.begin(), matrices.end(),
                     [](const WeightMatrix& matrix) { return matrix.packed.quantised(); });
}

}  // namespace

void Context::Workspace::run(int thread) {
  Lane lane{{thread, pool.size()}, 0, {every_row.data(), rows.size()}};
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
    float* row = x + static_cast<std::size_t>(i) * hidden;
    unpack_row(weights->embedding.packed, weights->embedding_row(rows[i].token), row);
    if (config.embedding_scale != 1.0f) kernels.scale(config.embedding_scale, row, hidden);
    if (config.positions == Positions::learned) {
      kernels.add(weights->positions.data() + static_cast<std::size_t>(rows[i].position) * hidden, row,
                  hidden);
      continue;
    }
    const std::size_t at = static_cast<std::size_t>(i) * config.rope_dims;
    rope_row(rows[i].position, frequencies.data(), config.rope_dims, cos_sin + at, config.pairs,
             config.rope_scaling.magnitude);
    if (config.window_rope_base > 0)
      rope_row(rows[i].position, window_frequencies.data(), config.rope_dims, window_cos_sin + at,
               config.pairs);
  }
  // No barrier: the first norm is split by the same rows.
}

void Context::Workspace::layer(Lane& lane) {
  const LayerWeights& layer = weights->layers[lane.stage];
  const bool whole = lane.stage < blocks;  // else only K and V are wanted of it
  const bool adds = lane.stage > 0 && lane.stage <= blocks;
  const Branch before = adds ? feed_forward_branch(weights->layers[lane.stage - 1]) : Branch{};
  norm_rows(adds ? &before : nullptr, layer.attention_norm, any_quantised(layer.query_key_value), lane);
  capture_features(lane);
  show_residual(lane);
  multiply(PassStage::query_key_value, lane);
  finish(PassStage::query_key_value, lane);
  if (lane.stage == config.layers - 1)
    lane.live = {wanted_rows.data(), static_cast<std::size_t>(wanted_count)};
  store_rows(layer, lane);
  if (lane.live.empty() || !whole) return;
  attend(layer.attention_output.packed.quantised(), lane);
  multiply(PassStage::output, lane);
  finish(PassStage::output, lane);

  const Branch mixed{&layer.attention_output.bias, &layer.attention_post_norm};
  if (config.experts > 0) {
    const bool codes = layer.router.packed.quantised() || layer.experts[0].gate.packed.quantised() ||
                       layer.experts[0].up.packed.quantised();
    norm_rows(&mixed, layer.feed_forward_norm, codes, lane, config.parallel);
    feed_forward_by_experts(layer, lane);
    return;
  }
  norm_rows(&mixed, layer.feed_forward_norm, any_quantised(layer.gate_up), lane, config.parallel);
  multiply(PassStage::gate_up, lane);
  // One matrix for gate and up gives a thread other columns than it needs; a tap looks before biases and
  // activation change what the products gave.
  if (config.fused_gate_up || tap != nullptr) pool.barrier();
  if (tap != nullptr) show_products(PassStage::gate_up, lane);
  activate(layer, lane);
  finish(PassStage::gate_up, lane);
  multiply(PassStage::down, lane);
  finish(PassStage::down, lane);
}

void Context::Workspace::head(const Lane& lane) {
  finish_rows(lane);
  capture_features(lane);
  show_residual(lane);
  if (logit_count == 0) return;
  Lane logits = lane;
  logits.live = {every_row.data(), static_cast<std::size_t>(logit_count)};
  multiply_head(logits);
  finish(PassStage::head, logits);
}

void Context::Workspace::end_stage(PassStage stage, const Lane& lane) {
  pool.barrier();
  if (clock != nullptr && lane.thread == 0) {
    const double now = seconds();
    clock->seconds[static_cast<int>(stage)] += now - clock_time;
    clock_time = now;
  }
}

void Context::Workspace::finish(PassStage stage, const Lane& lane) {
  end_stage(stage, lane);
  if (tap != nullptr && stage != PassStage::gate_up && stage != PassStage::head) show_products(stage, lane);
}

// ---- norms and the residual stream

Context::Workspace::Branch Context::Workspace::feed_forward_branch(const LayerWeights& layer) {
  return {&layer.down.bias, &layer.feed_forward_post_norm};
}

void Context::Workspace::add_residual(const Branch& branch, int row, std::size_t live_row) {
  float* add = out + live_row * out_stride;
  if (branch.bias->size > 0) kernels.add(branch.bias->data(), add, hidden);
  if (!branch.post_norm->empty()) norm(*branch.post_norm, add, add);
  if (config.residual_scale != 1.0f) kernels.scale(config.residual_scale, add, hidden);
  kernels.add(add, x + static_cast<std::size_t>(row) * hidden, hidden);
}

void Context::Workspace::norm(const NormWeights& norm, const float* from, float* to) const {
  if (config.norm == Norm::rms)
    kernels.rms_norm(from, norm.weight.data(), config.norm_eps, hidden, to);
  else
    kernels.layer_norm(from, norm.weight.data(), norm.bias.data(), config.norm_eps, hidden, to);
}

// `add_after`: of what is read here, nothing has been added.
void Context::Workspace::norm_rows(const Branch* added, const NormWeights& norm_weights, bool quantise,
                                   const Lane& lane, bool add_after) {
  const Span1 mine = lane.share_of(static_cast<int>(lane.live.size()));
  for (int j = mine.begin; j < mine.end; ++j) {
    const std::size_t at = static_cast<std::size_t>(j) * hidden;
    const float* residual = x + static_cast<std::size_t>(lane.live[j]) * hidden;
    if (added != nullptr && !add_after) add_residual(*added, lane.live[j], j);
    if (norm_weights.empty())
      std::copy_n(residual, hidden, normed.x + at);
    else
      norm(norm_weights, residual, normed.x + at);
    quantise_stretch(normed, at, hidden, quantise, lane.stage);
    if (added != nullptr && add_after) add_residual(*added, lane.live[j], j);
  }
  finish(PassStage::norm, lane);
}

void Context::Workspace::show_residual(const Lane& lane) {
  if (tap == nullptr) return;
  if (lane.thread == 0) tap->residual(lane.stage, x, static_cast<int>(rows.size()));
  pool.barrier();
}

// Between two barriers: nobody changes the residual stream until the next norm.
void Context::Workspace::capture_features(const Lane& lane) {
  if (feature_count == 0) return;
  const auto width = static_cast<std::size_t>(hidden);
  const Span1 mine = lane.share_of(static_cast<int>(rows.size()));
  for (std::size_t f = 0; f < options.feature_layers.size(); ++f) {
    if (options.feature_layers[f] != lane.stage) continue;
    for (int i = mine.begin; i < mine.end; ++i) {
      if (feature_index[i] < 0) continue;
      const std::size_t to = static_cast<std::size_t>(feature_index[i]) * options.feature_layers.size() + f;
      std::copy_n(x + static_cast<std::size_t>(i) * width, width, features + to * width);
    }
  }
}

// The last block's output joins the residual stream; rows that want logits are normed for the head.
void Context::Workspace::finish_rows(const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(lane.live.size()));
  for (int j = mine.begin; j < mine.end; ++j) {
    const int row = lane.live[j];
    const float* residual = x + static_cast<std::size_t>(row) * hidden;
    if (blocks == config.layers) add_residual(feed_forward_branch(weights->layers.back()), row, j);
    if (!all_finite(residual, hidden)) not_finite(lane.stage - 1);
    if (logit_index[row] < 0) continue;
    const std::size_t at = static_cast<std::size_t>(logit_index[row]) * hidden;
    norm(weights->output_norm, residual, normed.x + at);
    quantise_stretch(normed, at, hidden, weights->head().packed.quantised(), lane.stage);
  }
  finish(PassStage::other, lane);
}

// ---- attention

void Context::Workspace::norm_heads(const NormWeights& norm_weights, float* heads, int count) const {
  if (norm_weights.empty()) return;
  const int size = config.whole_query_norm ? count * config.head_dim : config.head_dim;
  const int end = count * config.head_dim;
  for (int at = 0; at < end; at += size)
    kernels.rms_norm(heads + at, norm_weights.weight.data(), config.norm_eps, size, heads + at);
}

void Context::Workspace::prepare_heads(const LayerWeights& layer, int row, const Lane& lane) {
  const bool whole = lane.stage < blocks;
  float* q = qkv + static_cast<std::size_t>(row) * qkv_stride;
  float* k = q + k_offset;
  const auto& matrices = layer.query_key_value;
  if (config.qkv_biases && config.fused_qkv) {
    kernels.add(matrices[0].bias.data(), q, q_width + 2 * kv_width);
  } else if (config.qkv_biases) {
    kernels.add(matrices[0].bias.data(), q, q_width);
    kernels.add(matrices[1].bias.data(), k, kv_width);
    kernels.add(matrices[2].bias.data(), q + v_offset, kv_width);
  }
  if (whole) norm_heads(layer.query_norm, q, config.heads);
  norm_heads(layer.key_norm, k, config.kv_heads);
  if (config.has_rope(lane.stage)) {
    const bool own_base = config.window_rope_base > 0 && config.has_window(lane.stage);
    const float* angles =
        (own_base ? window_cos_sin : cos_sin) + static_cast<std::size_t>(row) * config.rope_dims;
    const auto turn = config.pairs == RopePairs::halves ? kernels.rope_halves : kernels.rope;
    for (int h = 0; whole && h < config.heads; ++h) turn(q + h * config.head_dim, angles, config.rope_dims);
    for (int h = 0; h < config.kv_heads; ++h) turn(k + h * config.head_dim, angles, config.rope_dims);
  }
  if (whole) kernels.scale(query_scale, q, q_width);
}

void Context::Workspace::store_rows(const LayerWeights& layer, const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(rows.size()));
  for (int i = mine.begin; i < mine.end; ++i) {
    const Row& row = rows[i];
    prepare_heads(layer, i, lane);
    const float* q = qkv + static_cast<std::size_t>(i) * qkv_stride;
    const bool commits = row.slot == kCommitted;
    const int place = commits ? row.position : row.slot;
    std::byte* block = commits ? cache.committed_block(row.sequence, lane.stage, place)
                               : cache.scratch_block(row.sequence, lane.stage, place);
    kernels.store_kv(cache.layout(), q + k_offset, q + v_offset, block, place % kBlockPositions);
  }
  const Span1 live = lane.share_of(static_cast<int>(lane.live.size()));
  for (int j = live.begin; j < live.end; ++j) attention_row(j, lane);
  finish(PassStage::store, lane);
}

void Context::Workspace::attention_row(int live_row, const Lane& lane) {
  const int i = lane.live[live_row];
  AttentionRow& row = attention_rows[live_row];
  row.q = qkv + static_cast<std::size_t>(i) * qkv_stride;
  row.out = normed.x + static_cast<std::size_t>(live_row) * q_width;
  row.position = rows[i].position - unseen[i];  // how many it sees
  row.committed = committed[i] - unseen[i];
  row.first = config.has_window(lane.stage) ? first_seen(i) : 0;
  row.table = tables[i];
  row.blocks = cache.layer_blocks(lane.stage);
  row.block_stride = cache.block_stride();
  row.slots = row_slots + static_cast<std::size_t>(i) * cache.slots();
  row.scratch = cache.layer_scratch(rows[i].sequence, lane.stage);
  row.scratch_stride = cache.scratch_stride();
}

// The thread that made an output also quantises it, unless a group of 32 spans the outputs of two heads.
void Context::Workspace::attend(bool quantise, const Lane& lane) {
  const int count = static_cast<int>(lane.live.size()), group = config.heads / config.kv_heads;
  const bool groups_end_with_heads = config.head_dim % kBlockInputs == 0;
  const Span1 mine = lane.share_of(count * config.heads);
  AttentionTask task;
  task.rows = attention_rows.data();
  task.row_count = count;
  task.query_begin = mine.begin, task.query_end = mine.end;
  task.cap = score_cap;
  task.workspace = attention + static_cast<std::size_t>(lane.thread) * attention_floats;
  kernels.attention(cache.layout(), task);
  if (groups_end_with_heads)
    for (int query = mine.begin; query < mine.end;) {  // the heads of one row and kv head at a time
      const int row = query / group % count, head = query / group / count * group + query % group;
      const int heads = std::min(group - query % group, mine.end - query);
      quantise_stretch(normed, static_cast<std::size_t>(row) * q_width + head * config.head_dim,
                       heads * config.head_dim, quantise, lane.stage);
      query += heads;
    }
  finish(PassStage::attention, lane);
  if (!groups_end_with_heads) quantise_rows(quantise, lane);
}

// ---- what matmuls read

void Context::Workspace::not_finite(int stage) {
  int before = bad_stage.load();
  while (stage < before && !bad_stage.compare_exchange_weak(before, stage)) {
  }
}

void Context::Workspace::quantise_stretch(const Inputs& to, std::size_t at, int count, bool quantise,
                                          int stage) {
  if (!to.quantise(kernels, at, count, quantise)) not_finite(stage);
}

// All of attention's output, in stretches that need not end with a row: groups of 32 know nothing of rows.
void Context::Workspace::quantise_rows(bool quantise, const Lane& lane) {
  const Span1 groups = lane.share_of(static_cast<int>(lane.live.size()) * (q_width / kBlockInputs));
  if (groups.end > groups.begin)
    quantise_stretch(normed, static_cast<std::size_t>(groups.begin) * kBlockInputs,
                     (groups.end - groups.begin) * kBlockInputs, quantise, lane.stage);
  finish(PassStage::attention, lane);
}

// n columns of gate and up, biases added, to what `down` reads.
void Context::Workspace::activation(float* g, float* u, float* to, int n) const {
  switch (config.activation) {
    case Activation::silu_gated:
      kernels.silu_mul(g, u, to, n);
      break;
    case Activation::gelu_gated:
      kernels.gelu(g, to, n);
      for (int i = 0; i < n; ++i) to[i] *= u[i];
      break;
    case Activation::gelu:
      kernels.gelu(u, to, n);
      break;
    case Activation::gelu_exact:
      gelu_exact(kernels, u, to, n);
      break;
  }
}

void Context::Workspace::activate(const LayerWeights& layer, const Lane& lane) {
  const Span1 mine = lane.share_of((feed_forward + kGroupOutputs - 1) / kGroupOutputs);
  const int column = mine.begin * kGroupOutputs;
  const int count = std::min(mine.end * kGroupOutputs, feed_forward) - column;
  if (count <= 0) return;
  const bool fused = config.fused_gate_up, two = gated(config.activation);
  const float* bias = config.feed_forward_biases ? layer.gate_up.back().bias.data() : nullptr;
  const float* gate_bias = config.feed_forward_biases ? layer.gate_up[0].bias.data() : nullptr;
  for (std::size_t j = 0; j < lane.live.size(); ++j) {
    float* u = up + j * ff_stride + column;
    float* g = two ? gate + j * gate_stride + column : nullptr;
    const std::size_t at = j * static_cast<std::size_t>(feed_forward) + column;
    if (bias != nullptr) kernels.add(bias + column + (fused ? feed_forward : 0), u, count);
    if (two && gate_bias != nullptr) kernels.add(gate_bias + column, g, count);
    activation(g, u, activated.x + at, count);
    quantise_stretch(activated, at, count, layer.down.packed.quantised(), lane.stage);
  }
}

// ---- matmuls

Products Context::Workspace::products_of(PassStage stage, int number) {
  Products products;
  products.inputs = stage == PassStage::down ? &activated : &normed;
  if (stage == PassStage::head) {
    products.add(weights->head(), head_out, head_stride);
    return products;
  }
  const LayerWeights& layer = weights->layers[number];
  if (stage == PassStage::query_key_value) {
    const auto& matrices = layer.query_key_value;
    if (number < blocks) products.add(matrices[0], qkv, qkv_stride);
    if (!config.fused_qkv) {
      products.add(matrices[1], qkv + k_offset, qkv_stride);
      products.add(matrices[2], qkv + v_offset, qkv_stride);
    }
  } else if (stage == PassStage::output) {
    products.add(layer.attention_output, out, out_stride);
  } else if (stage == PassStage::gate_up) {
    products.side_by_side = true;
    products.add(layer.gate_up.back(), config.fused_gate_up ? gate : up, ff_stride);
    if (layer.gate_up.size() == 2) products.add(layer.gate_up[0], gate, gate_stride);
  } else {
    products.add(layer.down, out, out_stride);
  }
  return products;
}

// The weights this thread reads first after those of `stage`.
WeightStretch Context::Workspace::next_weights(PassStage stage, const Lane& lane) {
  const bool last = lane.stage >= config.layers - 1;
  Products next;
  if (stage == PassStage::output && config.experts > 0) return {};  // nobody knows yet
  if (stage == PassStage::query_key_value && lane.stage < blocks)
    next = products_of(PassStage::output, lane.stage);
  if (stage == PassStage::output) next = products_of(PassStage::gate_up, lane.stage);
  if (stage == PassStage::gate_up) next = products_of(PassStage::down, lane.stage);
  const bool ends = stage == PassStage::down || lane.stage >= blocks;
  if (ends && last) next = products_of(PassStage::head, lane.stage);
  if (ends && !last) next = products_of(PassStage::query_key_value, lane.stage + 1);
  if (stage == PassStage::head) next = products_of(PassStage::query_key_value, 0);  // of the next pass
  return lane.first_weights(next, 0);
}

void Context::Workspace::multiply(PassStage stage, const Lane& lane) {
  const Products products = products_of(stage, lane.stage);
  for (int i = 0; i < products.count; ++i) {
    if (lane.thread == 0) weight_bytes += products.items[i].weights->packed.bytes();
    const Span1 mine = lane.share_of(products, i);
    if (mine.begin >= mine.end) continue;
    MatmulTask work = products.task(i, static_cast<int>(lane.live.size()));
    work.next = lane.first_weights(products, i + 1);
    if (work.next.runs == 0) work.next = next_weights(stage, lane);
    kernels.matmul(work, mine.begin, mine.end);
  }
}

void Context::Workspace::show_products(PassStage stage, const Lane& lane) {
  const bool matmul = stage == PassStage::query_key_value || stage == PassStage::output ||
                      stage == PassStage::gate_up || stage == PassStage::down || stage == PassStage::head;
  if (matmul) show(products_of(stage, lane.stage), lane);
}

void Context::Workspace::show(const Products& products, const Lane& lane) {
  for (int i = 0; lane.thread == 0 && i < products.count; ++i)
    tap->matmul(products.items[i].weights->name.c_str(), products.task(i, static_cast<int>(lane.live.size())),
                products.inputs->x);
  pool.barrier();
}

}  // namespace coppice::core
