#include "train/draft_init.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "train/draft_tensors.h"

namespace coppice::core::train {
namespace {

// Which of the target's heads each head of the draft is. Each KV head of the draft takes the next query heads
// of its group; what is taken twice counts half each.
struct HeadMap {
  std::vector<std::int64_t> query, kv;
  std::vector<float> share;  // [query heads]
};

HeadMap map_heads(const DraftShape& shape, int target_heads, int target_kv_heads) {
  HeadMap map;
  const int group = target_heads / target_kv_heads;
  std::vector<int> taken(static_cast<std::size_t>(target_kv_heads)),
      uses(static_cast<std::size_t>(target_heads));
  for (int j = 0; j < shape.kv_heads; ++j) {
    const int kv = static_cast<int>(static_cast<std::int64_t>(j) * target_kv_heads / shape.kv_heads);
    map.kv.push_back(kv);
    for (int r = 0; r < shape.heads / shape.kv_heads; ++r) {
      const int head = kv * group + taken[static_cast<std::size_t>(kv)]++ % group;
      map.query.push_back(head);
      ++uses[static_cast<std::size_t>(head)];
    }
  }
  for (const std::int64_t head : map.query)
    map.share.push_back(1.0f / static_cast<float>(uses[static_cast<std::size_t>(head)]));
  return map;
}

// [heads * head_dim, inputs] -> the rows of `heads`.
torch::Tensor take_heads(const torch::Tensor& weight, const std::vector<std::int64_t>& heads, int head_dim) {
  return weight.view({-1, head_dim, weight.size(1)})
      .index_select(0, torch::tensor(heads))
      .reshape({-1, weight.size(1)});
}

Status fill_block(const gguf::File& file, int source, const HeadMap& map, const DraftShape& shape,
                  DraftBlock& block) {
  const auto read = [&](const char* role) {
    return read_tensor(file, fmt::format("blk.{}.{}.weight", source, role));
  };
  COPPICE_TRY(const torch::Tensor attention_gain, read("attn_norm"));
  COPPICE_TRY(const torch::Tensor feed_forward_gain, read("ffn_norm"));
  COPPICE_TRY(const torch::Tensor wq, read("attn_q"));
  COPPICE_TRY(const torch::Tensor wk, read("attn_k"));
  COPPICE_TRY(const torch::Tensor wv, read("attn_v"));
  COPPICE_TRY(const torch::Tensor wo, read("attn_output"));
  COPPICE_TRY(const torch::Tensor gate, read("ffn_gate"));
  COPPICE_TRY(const torch::Tensor up, read("ffn_up"));
  COPPICE_TRY(const torch::Tensor down, read("ffn_down"));
  const int d = shape.head_dim;
  block.wq.copy_(pairs_to_halves(take_heads(wq, map.query, d), shape.heads) * attention_gain);
  block.wk.copy_(pairs_to_halves(take_heads(wk, map.kv, d), shape.kv_heads) * attention_gain);
  block.wv.copy_(take_heads(wv, map.kv, d) * attention_gain);
  const torch::Tensor share = torch::tensor(map.share).repeat_interleave(d);
  block.wo.copy_(take_heads(wo.t().contiguous(), map.query, d).t() * share);
  block.gate.copy_(gate * feed_forward_gain);
  block.up.copy_(up * feed_forward_gain);
  block.down.copy_(down);
  return {};
}

// Sums over tokens of what passes the norms, each token scaled as its norm will scale it, and how much each
// neuron of the feed-forward layers is used.
class Measure : public DraftTap {
 public:
  explicit Measure(const DraftShape& shape)
      : norms_(static_cast<std::size_t>(2 * shape.layers + 1)),
        neurons_(static_cast<std::size_t>(shape.layers)) {}

  void residual(const torch::Tensor& x) override {
    const torch::Tensor flat = x.flatten(0, 1).to(torch::kFloat64);
    const torch::Tensor rows = flat * flat.square().mean(-1, true).add(1e-12).rsqrt();
    add(norms_[next_], torch::mm(rows.t(), rows));
    if (next_ == 0) tokens_ += static_cast<double>(rows.size(0));
    next_ = (next_ + 1) % norms_.size();
  }

  void feed_forward(int block, const torch::Tensor& a) override {
    add(neurons_[static_cast<std::size_t>(block)], a.flatten(0, 1).to(torch::kFloat64).square().sum(0));
  }

  // Mean of x x^T before norm i of 2 * layers + 1, its trace the hidden size.
  torch::Tensor covariance(std::size_t norm) const { return norms_[norm] / tokens_; }
  std::size_t norms() const { return norms_.size(); }
  torch::Tensor neurons(std::size_t block) const { return neurons_[block]; }  // [feed_forward]

 private:
  static void add(torch::Tensor& sum, const torch::Tensor& part) { sum = sum.defined() ? sum + part : part; }

  std::vector<torch::Tensor> norms_, neurons_;
  std::size_t next_ = 0;
  double tokens_ = 0;
};

torch::Tensor principal_components(const Measure& measure) {
  torch::Tensor sum = measure.covariance(0);
  for (std::size_t i = 1; i < measure.norms(); ++i) sum = sum + measure.covariance(i);
  return std::get<1>(torch::linalg_eigh(sum, "U")).flip(1);  // columns, the largest first
}

void sort_neurons(SlimDraft& draft, const Measure& measure) {
  for (std::size_t i = 0; i < draft.blocks.size(); ++i) {
    DraftBlock& block = draft.blocks[i];
    const torch::Tensor given = measure.neurons(i) * block.down.to(torch::kFloat64).square().sum(0);
    const torch::Tensor order = std::get<1>(given.sort(0, true));
    block.gate.copy_(block.gate.index_select(0, order));
    block.up.copy_(block.up.index_select(0, order));
    block.down.copy_(block.down.index_select(1, order));
  }
}

torch::Tensor corner(const torch::Tensor& from, const torch::Tensor& like) {
  torch::Tensor part = from;
  for (std::int64_t d = 0; d < from.dim(); ++d) part = part.slice(d, 0, like.size(d));
  return part;
}

// The first dimensions of `whole`, as wide as the draft's widest.
void copy_corner(const SlimDraft& whole, SlimDraft& draft) {
  for (std::size_t i = 0; i < draft.blocks.size(); ++i) {
    const DraftBlock& from = whole.blocks[i];
    DraftBlock& to = draft.blocks[i];
    for (auto member : {&DraftBlock::wq, &DraftBlock::wk, &DraftBlock::wv, &DraftBlock::wo, &DraftBlock::gate,
                        &DraftBlock::up, &DraftBlock::down}) {
      (to.*member).copy_(corner(from.*member, to.*member));
    }
  }
  draft.head.copy_(corner(whole.head, draft.head));
  draft.used_embedding.copy_(corner(whole.used_embedding, draft.used_embedding));
  if (!draft.shares_embedding())
    draft.rare_embedding.copy_(corner(whole.rare_embedding, draft.rare_embedding));
}

// A slice's values are divided by its own root mean square, which is larger than the whole stream's where the
// slice carries more than its share: the gain that makes the slice what it was within the whole. `energy`
// [hidden]: mean square of each dimension, where the whole has 1 on average.
double gain_of(const torch::Tensor& energy, std::int64_t hidden) {
  return std::sqrt(energy.slice(0, 0, hidden).mean().item<double>());
}

void set_gains(SlimDraft& draft, std::span<const torch::Tensor> energies) {
  const DraftShape& shape = draft.shape();
  for (std::size_t w = 0; w < shape.hidden.size(); ++w) {
    const std::int64_t hidden = shape.hidden[w];
    for (std::size_t i = 0; i < draft.blocks.size(); ++i) {
      draft.blocks[i].attention_norm[w].fill_(gain_of(energies[2 * i], hidden));
      draft.blocks[i].feed_forward_norm[w].fill_(gain_of(energies[2 * i + 1], hidden));
    }
    draft.output_norm[w].fill_(gain_of(energies.back(), hidden));
  }
  if (shape.exit_layer > 0) {
    draft.exit_norm.fill_(
        gain_of(energies[2 * static_cast<std::size_t>(shape.exit_layer)], draft.exit_norm.size(0)));
  }
}

// int64 [vocab]: the row of the head's token whose embedding is most like a token's own.
torch::Tensor nearest_rows(const SlimDraft& whole) {
  const torch::Tensor all = whole.embedding();
  const auto unit = [](const torch::Tensor& x) { return x / x.norm(2, 1, true).clamp_min(1e-12); };
  const torch::Tensor used = unit(whole.used_embedding).t().contiguous();
  std::vector<torch::Tensor> rows;
  for (std::int64_t at = 0; at < all.size(0); at += 1024)
    rows.push_back(torch::mm(unit(all.slice(0, at, std::min(at + 1024, all.size(0)))), used).argmax(1));
  return torch::cat(rows);
}

}  // namespace

Result<std::shared_ptr<SlimDraft>> whole_draft(const gguf::File& target, const DraftShape& shape,
                                               const std::vector<std::int32_t>& head_tokens) {
  torch::NoGradGuard no_grad;
  COPPICE_TRY(const torch::Tensor embedding, read_tensor(target, "token_embd.weight"));
  COPPICE_TRY(const torch::Tensor gain, read_tensor(target, "output_norm.weight"));
  torch::Tensor head = embedding;
  if (target.tensor("output.weight") != nullptr) {
    COPPICE_TRY(head, read_tensor(target, "output.weight"));
  }
  if (head.size(0) != embedding.size(0))
    return fail(target.path() + ": its head is trimmed; a draft needs the whole model");
  COPPICE_TRY(const torch::Tensor gate, read_tensor(target, "blk.0.ffn_gate.weight"));
  COPPICE_TRY(const torch::Tensor keys, read_tensor(target, "blk.0.attn_k.weight"));
  COPPICE_TRY(const torch::Tensor queries, read_tensor(target, "blk.0.attn_q.weight"));
  DraftShape wide = shape;
  wide.factors = {kWidestFactor};
  wide.hidden = {static_cast<int>(embedding.size(1))};
  wide.feed_forward = {static_cast<int>(gate.size(0))};
  wide.exit_layer = 0;
  wide.exit_width = 0;
  auto draft = std::make_shared<SlimDraft>(wide, head_tokens);
  draft->set_embedding(embedding);
  std::vector<std::int64_t> rows(head_tokens.begin(), head_tokens.end());
  draft->head.copy_(head.index_select(0, torch::tensor(rows)) * gain);
  const int d = shape.head_dim;
  const HeadMap map =
      map_heads(shape, static_cast<int>(queries.size(0)) / d, static_cast<int>(keys.size(0)) / d);
  for (std::size_t i = 0; i < draft->blocks.size(); ++i) {
    COPPICE_TRY_STATUS(fill_block(target, shape.from[i], map, shape, draft->blocks[i]));
  }
  return draft;
}

void turn_residual(SlimDraft& draft, const torch::Tensor& q) {
  torch::NoGradGuard no_grad;
  const torch::Tensor turn = q.to(torch::kFloat64);
  const auto reads = [&](torch::Tensor& w) { w.copy_(torch::mm(w.to(torch::kFloat64), turn)); };
  const auto writes = [&](torch::Tensor& w) { w.copy_(torch::mm(turn.t(), w.to(torch::kFloat64))); };
  for (DraftBlock& block : draft.blocks) {
    for (torch::Tensor* w : {&block.wq, &block.wk, &block.wv, &block.gate, &block.up}) reads(*w);
    for (torch::Tensor* w : {&block.wo, &block.down}) writes(*w);
  }
  for (torch::Tensor* w : {&draft.used_embedding, &draft.rare_embedding, &draft.head}) reads(*w);
}

Result<DraftInit> init_draft(const gguf::File& target, const DraftShape& shape,
                             const std::vector<std::int32_t>& head_tokens,
                             std::span<const torch::Tensor> texts, bool share_embedding) {
  if (texts.empty()) return fail("there is no text to begin a draft with; is the corpus empty?");
  torch::NoGradGuard no_grad;
  COPPICE_TRY(const auto whole, whole_draft(target, shape, head_tokens));
  Measure measure(whole->shape());
  for (const torch::Tensor& tokens : texts) whole->forward(tokens, {0, false}, &measure);
  const torch::Tensor q = principal_components(measure);
  turn_residual(*whole, q);
  sort_neurons(*whole, measure);
  std::vector<torch::Tensor> energies;  // [norms] of [hidden]
  for (std::size_t i = 0; i < measure.norms(); ++i) {
    energies.push_back(torch::mm(torch::mm(q.t(), measure.covariance(i)), q).diagonal().contiguous());
  }
  DraftInit init;
  init.draft = std::make_shared<SlimDraft>(shape, head_tokens);
  if (share_embedding) init.draft->share_embedding(nearest_rows(*whole));
  copy_corner(*whole, *init.draft);
  set_gains(*init.draft, energies);
  const double all = static_cast<double>(energies[0].size(0) * static_cast<std::int64_t>(energies.size()));
  for (const int hidden : shape.hidden) {
    double kept = 0;
    for (const torch::Tensor& energy : energies) kept += energy.slice(0, 0, hidden).sum().item<double>();
    init.energy.push_back(kept / all);
  }
  return init;
}

}  // namespace coppice::core::train
