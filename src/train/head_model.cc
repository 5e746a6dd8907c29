#include "train/head_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "train/attention.h"
#include "train/draft_tensors.h"

namespace coppice::core::train {
namespace {

using torch::Tensor;

constexpr int kJudgedDepth = 4;
constexpr int kRowsAtOnce = 1024;  // of logits over the whole draft vocabulary
constexpr int kChain = 8;

// What is the same at every depth: rotary positions, and what the embeddings give queries, keys and values.
struct Shared {
  Rope rope;
  Tensor query, key, value;  // [B, R, width]
};

struct Heads {
  Tensor query;       // [B, R, heads, head_dim]
  Tensor key, value;  // [B, R, kv_heads, head_dim]
};

Tensor half(const Tensor& weight, int which) {
  const auto width = weight.size(1) / 2;
  return weight.slice(1, which * width, (which + 1) * width);
}

// The states of row p - 1, for row p. Row 0 has none: zeros, which nobody learns from.
Tensor shifted(const Tensor& hidden) {
  return torch::constant_pad_nd(hidden.slice(1, 0, hidden.size(1) - 1), {0, 0, 1, 0});
}

}  // namespace

HeadModel::HeadModel(HeadShape shape, HeadRecipe recipe, HeadWeights weights, DraftVocabulary vocabulary,
                     Tensor embedding)
    : shape_(std::move(shape)),
      recipe_(std::move(recipe)),
      weights_(std::move(weights)),
      vocabulary_(std::move(vocabulary)),
      embedding_(std::move(embedding)) {
  const auto add = [&](const char* name, Tensor& value, bool decay) {
    value = value.contiguous().set_requires_grad(true);
    parameters_.push_back({name, value, decay});
  };
  add("fc", weights_.fc, true);
  add("embedding_norm", weights_.embedding_norm, false);
  add("hidden_norm", weights_.hidden_norm, false);
  add("query", weights_.query, true);
  add("key", weights_.key, true);
  add("value", weights_.value, true);
  add("attention_output", weights_.attention_output, true);
  add("feed_forward_norm", weights_.feed_forward_norm, false);
  add("gate", weights_.gate, true);
  add("up", weights_.up, true);
  add("down", weights_.down, true);
  add("output_norm", weights_.output_norm, false);
  if (recipe_.train_output) add("output", weights_.output, false);
}

std::vector<Tensor> HeadModel::unroll(const Batch& batch, int depth, double narrowing) const {
  const HeadWeights& w = weights_;
  const auto rows = batch.ids.size(1) - 2;
  const Tensor next = batch.ids.slice(1, 1, 1 + rows);
  Tensor embedded = rms_norm(embedding_.index_select(0, next.reshape({-1})).reshape({next.size(0), rows, -1}),
                             w.embedding_norm, shape_.norm_eps);
  Shared shared{Rope(shape_.rope_base, shape_.head_dim, static_cast<int>(rows)),
                project(embedded, half(w.query, 0)), project(embedded, half(w.key, 0)),
                project(embedded, half(w.value, 0))};
  Tensor hidden = project((batch.features.slice(1, 0, rows) - w.mean) * w.scale, w.fc);
  ChainAttention attention(shape_.heads / shape_.kv_heads);
  std::vector<Tensor> outputs;
  for (int k = 1; k <= depth; ++k) {
    if (k > 1) {
      const auto fewer = std::max<int64_t>(
          1, static_cast<int64_t>(std::ceil(static_cast<double>(outputs.back().size(0)) * narrowing)));
      hidden = shifted(outputs.back().slice(0, 0, fewer));
    }
    const auto b = hidden.size(0);
    const Tensor normal = rms_norm(hidden, w.hidden_norm, shape_.norm_eps);
    const auto split = [&](const Tensor& embedding_part, const Tensor& weight, int heads) {
      return (embedding_part.slice(0, 0, b) + project(normal, half(weight, 1)))
          .reshape({b, rows, heads, shape_.head_dim});
    };
    const Tensor query = shared.rope.turn(split(shared.query, w.query, shape_.heads));
    const Tensor key = shared.rope.turn(split(shared.key, w.key, shape_.kv_heads));
    const Tensor value = split(shared.value, w.value, shape_.kv_heads);
    const Tensor seen = attention.step(query, key, value).reshape({b, rows, -1});
    const Tensor middle = hidden + project(seen, w.attention_output);
    const Tensor fed = rms_norm(middle, w.feed_forward_norm, shape_.norm_eps);
    outputs.push_back(middle + project(gated(project(fed, w.gate), project(fed, w.up)), w.down));
  }
  return outputs;
}

// Which rows (of [stretches * R], flat) learn at depth k: those whose token is scored and whose chain began
// in the stretch.
static Tensor scored_rows(const Batch& batch, int64_t stretches, int k) {
  Tensor scored = batch.scored.slice(0, 0, stretches).slice(1, 2).clone();
  if (k > 1) scored.slice(1, 0, k - 1).fill_(false);
  return scored.reshape({-1}).nonzero().reshape({-1});
}

static Tensor taken(const Tensor& of, int64_t stretches, const Tensor& rows) {  // [B, T, n] -> [rows, n]
  return of.slice(0, 0, stretches).slice(1, 2).reshape({-1, of.size(2)}).index_select(0, rows);
}

double HeadModel::learn(const Batch& batch, Random& random) {
  if (batch.ids.size(1) < 3) return 0;
  const auto outputs = unroll(batch, recipe_.depth, recipe_.narrowing);
  std::vector<Tensor> states, tops, logps;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto stretches = outputs[k].size(0);
    const Tensor rows = scored_rows(batch, stretches, static_cast<int>(k) + 1);
    states.push_back(outputs[k].reshape({-1, shape_.hidden}).index_select(0, rows));
    tops.push_back(taken(batch.top, stretches, rows));
    logps.push_back(taken(batch.top_logp, stretches, rows));
  }
  const SampledRows sampled = sample_rows(vocabulary_, torch::cat(tops), recipe_.negatives, random);
  const Tensor normal = rms_norm(torch::cat(states), weights_.output_norm, shape_.norm_eps);
  const Tensor logits = project(normal, weights_.output.index_select(0, sampled.rows)) + sampled.log_weight;
  Tensor loss = torch::zeros({});
  double weight = 1, weights = 0;
  int64_t begin = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k, weight *= recipe_.depth_weight) {
    const auto count = states[k].size(0);
    if (count == 0) continue;
    const Teacher teacher{sampled.at.slice(0, begin, begin + count), logps[k], recipe_.temperature,
                          recipe_.objective};
    loss = loss + weight * distil(logits.slice(0, begin, begin + count), teacher);
    weights += weight;
    begin += count;
  }
  if (weights == 0) return 0;
  loss = loss / weights;
  loss.backward();
  return loss.item<double>();
}

void HeadModel::judge(const Batch& batch, std::vector<Agreement>& sums) {
  if (sums.empty())
    for (int k = 1; k <= kJudgedDepth; ++k) sums.push_back({fmt::format("depth {}", k)});
  if (batch.ids.size(1) < 3) return;
  const auto outputs = unroll(batch, kJudgedDepth, 1);
  const Tensor output = weights_.output.detach();
  for (int k = 1; k <= kJudgedDepth; ++k) {
    const Tensor& states = outputs[static_cast<std::size_t>(k) - 1];
    const Tensor rows = scored_rows(batch, states.size(0), k);
    const Tensor normal = rms_norm(states.reshape({-1, shape_.hidden}).index_select(0, rows),
                                   weights_.output_norm, shape_.norm_eps);
    const Tensor top = taken(batch.top, states.size(0), rows);
    const Tensor logp = taken(batch.top_logp, states.size(0), rows);
    for (int64_t at = 0; at < rows.size(0); at += kRowsAtOnce) {
      const Tensor logits = project(normal.slice(0, at, at + kRowsAtOnce), output);
      count_agreement(logits, vocabulary_, top.slice(0, at, at + kRowsAtOnce),
                      logp.slice(0, at, at + kRowsAtOnce), sums[static_cast<std::size_t>(k) - 1]);
    }
  }
}

// A chain reaches depth k when every guess before it was right; beyond the depths judged, the last one's
// share.
double HeadModel::accepted(const std::vector<Agreement>& sums) const {
  double length = 1, reached = 1;
  for (int depth = 0; depth < kChain && !sums.empty(); ++depth) {
    const Agreement& at = sums[std::min(static_cast<std::size_t>(depth), sums.size() - 1)];
    length += reached *= at.of(at.top1);
  }
  return length;
}

Status HeadModel::export_to(gguf::Writer& writer) const {
  const HeadShape& s = shape_;
  const auto u32 = [&](const char* key, int value) {
    writer.add_u32(std::string("eagle3.") + key, static_cast<std::uint32_t>(value));
  };
  writer.add_text("general.architecture", "eagle3");
  u32("block_count", 1);
  u32("context_length", s.context_length);
  u32("embedding_length", s.hidden);
  u32("feed_forward_length", s.feed_forward);
  u32("attention.head_count", s.heads);
  u32("attention.head_count_kv", s.kv_heads);
  u32("attention.key_length", s.head_dim);
  u32("attention.value_length", s.head_dim);
  u32("rope.dimension_count", s.head_dim);
  u32("vocab_size", static_cast<int>(vocabulary_.rows.size(0)));
  u32("target_hidden_size", s.features / static_cast<int>(s.layers.size()));
  writer.add_f32("eagle3.attention.layer_norm_rms_epsilon", static_cast<float>(s.norm_eps));
  writer.add_f32("eagle3.rope.freq_base", static_cast<float>(s.rope_base));
  writer.add_bool("eagle3.norm_before_residual", false);
  writer.add_u32s("eagle3.target_layers", std::vector<std::uint32_t>(s.layers.begin(), s.layers.end()));
  const int widths[] = {s.hidden, s.feed_forward, s.heads * s.head_dim, s.features};
  COPPICE_TRY(const Format* format, format_to_write(recipe_.format, widths));
  const auto add = [&](const char* name, const Tensor& value, const Format& as) {
    add_tensor(writer, name, as, value);
  };
  const Format& f32 = *find_format("F32");
  const HeadWeights& w = weights_;
  add("feature_mean.weight", w.mean, f32);
  add("feature_scale.weight", w.scale, f32);
  add("fc.weight", w.fc, *format);
  add("blk.0.attn_norm.weight", w.embedding_norm, f32);
  add("blk.0.attn_norm_2.weight", w.hidden_norm, f32);
  add("blk.0.attn_q.weight", w.query, *format);
  add("blk.0.attn_k.weight", w.key, *format);
  add("blk.0.attn_v.weight", w.value, *format);
  add("blk.0.attn_output.weight", w.attention_output, *format);
  add("blk.0.ffn_norm.weight", w.feed_forward_norm, f32);
  add("blk.0.ffn_gate.weight", w.gate, *format);
  add("blk.0.ffn_up.weight", w.up, *format);
  add("blk.0.ffn_down.weight", w.down, *format);
  add("output_norm.weight", w.output_norm, f32);
  add("output.weight", w.output, *format);
  std::vector<std::int64_t> ids(vocabulary_.tokens.begin(), vocabulary_.tokens.end());
  const auto bytes = std::as_bytes(std::span(ids));
  writer.add_tensor("d2t", integer_format(), {vocabulary_.size()}, {bytes.begin(), bytes.end()});
  return {};
}

}  // namespace coppice::core::train
