#include "train/draft_model.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/check.h"

namespace coppice::core::train {
namespace {

std::int64_t at(const std::vector<int>& sizes, int width) { return sizes[static_cast<std::size_t>(width)]; }

const torch::Tensor& at(const std::vector<torch::Tensor>& gains, int width) {
  return gains[static_cast<std::size_t>(width)];
}

// [texts, heads, tokens, head_dim]: pairs (i, i + head_dim / 2) turned.
torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin) {
  const std::int64_t half = x.size(-1) / 2;
  const torch::Tensor turned = torch::cat({x.slice(-1, half), x.slice(-1, 0, half)}, -1);
  return x * cos + turned * sin;
}

// Queries [texts, heads, tokens, d], keys and values [texts, kv_heads, tokens, d] -> [texts, heads, tokens,
// d].
torch::Tensor causal_attention(const torch::Tensor& q, torch::Tensor k, torch::Tensor v) {
  const std::int64_t group = q.size(1) / k.size(1);
  if (group > 1) {
    k = k.repeat_interleave(group, 1);
    v = v.repeat_interleave(group, 1);
  }
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, true);
#else
  const std::int64_t tokens = q.size(2);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  const auto options = torch::TensorOptions().device(q.device()).dtype(torch::kBool);
  const torch::Tensor later = torch::ones({tokens, tokens}, options).triu(1);
  const torch::Tensor scores = torch::matmul(q * scale, k.transpose(2, 3)).masked_fill(later, -1e9);
  return torch::matmul(torch::softmax(scores, -1), v);
#endif
}

}  // namespace

SlimDraft::SlimDraft(DraftShape shape, std::vector<std::int32_t> head_tokens)
    : shape_(std::move(shape)), head_tokens_(std::move(head_tokens)) {
  const int widest = shape_.widest();
  const std::int64_t hidden = at(shape_.hidden, widest), ff = at(shape_.feed_forward, widest);
  const std::int64_t q = shape_.heads * shape_.head_dim, kv = shape_.kv_heads * shape_.head_dim;
  const std::int64_t rows = shape_.head_rows, vocab = shape_.vocab;
  COPPICE_CHECK(static_cast<std::int64_t>(head_tokens_.size()) == rows && rows <= vocab);
  const auto parameter = [this](const std::string& name, const std::vector<std::int64_t>& sizes,
                                float value) {
    const bool matrix = sizes.size() > 1;
    parameters_.push_back({name, torch::full(sizes, value).requires_grad_(), matrix});
    return parameters_.back().value;
  };
  const auto gains = [&](const std::string& name) {
    std::vector<torch::Tensor> out;
    for (const int h : shape_.hidden) out.push_back(parameter(fmt::format("{}_{}", name, h), {h}, 1.0f));
    return out;
  };
  used_embedding = parameter("used_embedding", {rows, hidden}, 0.0f);
  rare_embedding = torch::zeros({vocab - rows, hidden});
  head = parameter("head", {rows, hidden}, 0.0f);
  for (int i = 0; i < shape_.layers; ++i) {
    const auto name = [i](const char* role) { return fmt::format("block_{}_{}", i, role); };
    DraftBlock block;
    block.wq = parameter(name("wq"), {q, hidden}, 0.0f);
    block.wk = parameter(name("wk"), {kv, hidden}, 0.0f);
    block.wv = parameter(name("wv"), {kv, hidden}, 0.0f);
    block.wo = parameter(name("wo"), {hidden, q}, 0.0f);
    block.gate = parameter(name("gate"), {ff, hidden}, 0.0f);
    block.up = parameter(name("up"), {ff, hidden}, 0.0f);
    block.down = parameter(name("down"), {hidden, ff}, 0.0f);
    block.attention_norm = gains(name("attention_norm"));
    block.feed_forward_norm = gains(name("feed_forward_norm"));
    blocks.push_back(std::move(block));
  }
  output_norm = gains("output_norm");
  if (shape_.exit_layer > 0) exit_norm = parameter("exit_norm", {at(shape_.hidden, shape_.exit_width)}, 1.0f);

  row_of_token_ = torch::full({vocab}, -1, torch::kInt64);
  place_ = torch::empty({vocab}, torch::kInt64);
  auto* row = row_of_token_.data_ptr<std::int64_t>();
  auto* place = place_.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < head_tokens_.size(); ++i) row[head_tokens_[i]] = static_cast<std::int64_t>(i);
  std::int64_t rare = 0;
  for (std::int64_t token = 0; token < vocab; ++token)
    place[token] = row[token] >= 0 ? row[token] : -1 - rare++;
}

torch::Tensor SlimDraft::embedding() const {
  torch::NoGradGuard no_grad;
  const torch::Tensor used = (place_ >= 0).unsqueeze(1);
  const torch::Tensor common = used_embedding.index_select(0, place_.clamp_min(0));
  if (rare_embedding.size(0) == 0) return common;
  const torch::Tensor rare = rare_embedding.index_select(0, (-1 - place_).clamp_min(0));
  return torch::where(used, common, rare);
}

void SlimDraft::set_embedding(const torch::Tensor& values) {
  torch::NoGradGuard no_grad;
  used_embedding.copy_(values.index_select(0, (row_of_token_ >= 0).nonzero().flatten()));
  if (rare_embedding.size(0) > 0)
    rare_embedding.copy_(values.index_select(0, (row_of_token_ < 0).nonzero().flatten()));
}

void SlimDraft::share_embedding(const torch::Tensor& rows) {
  place_ = torch::where(row_of_token_ >= 0, row_of_token_, rows);
  rare_embedding = torch::zeros({0, used_embedding.size(1)});
}

torch::Tensor SlimDraft::embed(const torch::Tensor& tokens) const {
  torch::NoGradGuard no_grad;
  const torch::Tensor where = place(tokens);
  torch::Tensor x = used_embedding.index_select(0, where.clamp_min(0));
  const torch::Tensor rare = (where < 0).nonzero().flatten();
  if (rare.size(0) > 0) {
    x.index_copy_(0, rare, rare_embedding.index_select(0, -1 - where.index_select(0, rare)));
  }
  return x;
}

// The part of a weight that a width uses, in the compute type.
torch::Tensor SlimDraft::matrix(const torch::Tensor& weight, std::int64_t outputs,
                                std::int64_t inputs) const {
  return weight.slice(0, 0, outputs).slice(1, 0, inputs).to(compute_).contiguous();
}

torch::Tensor SlimDraft::norm(const torch::Tensor& x, const torch::Tensor& gain) const {
  const torch::Tensor scale = x.square().mean(-1, true).add(shape_.norm_eps).rsqrt();
  return (x * scale * gain).to(compute_);
}

const SlimDraft::Rotation& SlimDraft::rotation(std::int64_t tokens) {
  if (rotation_.cos.defined() && rotation_.cos.size(0) == tokens && rotation_.cos.scalar_type() == compute_) {
    return rotation_;
  }
  torch::NoGradGuard no_grad;
  const std::int64_t half = shape_.head_dim / 2;
  const torch::Tensor exponents = torch::arange(half, torch::kFloat64) * (-2.0 / shape_.head_dim);
  const torch::Tensor frequencies =
      torch::pow(torch::full({half}, shape_.rope_base, torch::kFloat64), exponents);
  const torch::Tensor angles = torch::outer(torch::arange(tokens, torch::kFloat64), frequencies);
  const torch::Tensor cos = angles.cos(), sin = angles.sin();
  rotation_.cos = torch::cat({cos, cos}, 1).to(compute_);
  rotation_.sin = torch::cat({-sin, sin}, 1).to(compute_);
  return rotation_;
}

DraftKv SlimDraft::keys_values(const DraftBlock& block, const torch::Tensor& normed,
                               const Rotation& rotation) const {
  const std::int64_t texts = normed.size(0), tokens = normed.size(1), hidden = normed.size(2);
  const auto project = [&](const torch::Tensor& weight) {
    return torch::linear(normed, matrix(weight, weight.size(0), hidden))
        .view({texts, tokens, shape_.kv_heads, shape_.head_dim})
        .transpose(1, 2);
  };
  return {rotate(project(block.wk), rotation.cos, rotation.sin), project(block.wv)};
}

torch::Tensor SlimDraft::attend(const DraftBlock& block, const torch::Tensor& normed, const DraftKv& kv,
                                const Rotation& rotation) const {
  const std::int64_t texts = normed.size(0), tokens = normed.size(1), hidden = normed.size(2);
  const torch::Tensor q = torch::linear(normed, matrix(block.wq, block.wq.size(0), hidden))
                              .view({texts, tokens, shape_.heads, shape_.head_dim})
                              .transpose(1, 2);
  const torch::Tensor mixed = causal_attention(rotate(q, rotation.cos, rotation.sin), kv.k, kv.v);
  return torch::linear(mixed.transpose(1, 2).reshape({texts, tokens, -1}),
                       matrix(block.wo, hidden, block.wo.size(1)));
}

torch::Tensor SlimDraft::feed_forward(int block, const torch::Tensor& normed, int width,
                                      DraftTap* tap) const {
  const DraftBlock& weights = blocks[static_cast<std::size_t>(block)];
  const std::int64_t hidden = at(shape_.hidden, width), ff = at(shape_.feed_forward, width);
  const torch::Tensor activation = torch::silu(torch::linear(normed, matrix(weights.gate, ff, hidden))) *
                                   torch::linear(normed, matrix(weights.up, ff, hidden));
  if (tap != nullptr) tap->feed_forward(block, activation.detach().to(torch::kFloat32));
  return torch::linear(activation, matrix(weights.down, hidden, ff));
}

DraftPass SlimDraft::forward(const torch::Tensor& tokens, DraftMode mode, DraftTap* tap) {
  const torch::Tensor embedded = embed(tokens.flatten()).view({tokens.size(0), tokens.size(1), -1});
  return forward_embedded(embedded, mode, nullptr, tap);
}

DraftPass SlimDraft::forward_embedded(const torch::Tensor& embedded, DraftMode mode, const OtherKv* other,
                                      DraftTap* tap) {
  COPPICE_CHECK(!mode.exit || (shape_.exit_layer > 0 && mode.width == shape_.exit_width));
  const Rotation& turn = rotation(embedded.size(1));
  const auto look = [&](const torch::Tensor& x) {
    if (tap != nullptr) tap->residual(x.detach());
  };
  DraftPass pass;
  torch::Tensor x = embedded.slice(-1, 0, at(shape_.hidden, mode.width));
  for (int i = 0; i < shape_.layers; ++i) {
    const DraftBlock& block = blocks[static_cast<std::size_t>(i)];
    const bool left_out = mode.exit && i >= shape_.exit_layer;
    if (!left_out) look(x);
    torch::Tensor normed = norm(x, at(block.attention_norm, mode.width));
    DraftKv kv = keys_values(block, normed, turn);
    pass.kv.push_back(kv);
    if (left_out) continue;
    if (other != nullptr) {
      const DraftKv& theirs = other->blocks[static_cast<std::size_t>(i)];
      kv = {torch::where(other->take, theirs.k, kv.k), torch::where(other->take, theirs.v, kv.v)};
    }
    x = x + attend(block, normed, kv, turn);
    look(x);
    normed = norm(x, at(block.feed_forward_norm, mode.width));
    x = x + feed_forward(i, normed, mode.width, tap);
  }
  look(x);
  pass.hidden = norm(x, mode.exit ? exit_norm : at(output_norm, mode.width));
  return pass;
}

torch::Tensor SlimDraft::logits(const torch::Tensor& hidden, const torch::Tensor& rows) {
  const torch::Tensor& weight = rows.defined() ? rows : head;
  return torch::linear(hidden, matrix(weight, weight.size(0), hidden.size(-1)));
}

}  // namespace coppice::core::train
