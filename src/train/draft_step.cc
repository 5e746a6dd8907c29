#include "train/draft_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/check.h"

namespace coppice::core::train {

struct DraftStep::Job {
  DraftMode mode;
  std::vector<std::int64_t> texts;  // ascending
};

// What the passes of a step share. Rows of the head and of the embedding are taken out once, so that their
// gradients are brought back once.
struct DraftStep::Shared {
  const DraftBatch& batch;
  Sharpened sharpened;
  Candidates candidates;
  torch::Tensor head;       // f32 [candidates, hidden], a leaf
  torch::Tensor embedded;   // f32 [texts, length, hidden], a leaf if it is trained
  torch::Tensor text_of;    // int64 [n]
  std::vector<DraftKv> kv;  // of the whole batch, by the last pass over each text
  std::vector<bool> seen;   // [texts] whether there was one
  torch::Tensor widest;     // f32 [n, candidates]: what the widest slice says, once it has run
  std::vector<ModeLoss> losses;
};

namespace {

template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

// `count` of the batch's texts.
std::vector<std::int64_t> some_texts(std::int64_t texts, std::int64_t count, Random& random) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(texts));
  std::iota(all.begin(), all.end(), 0);
  shuffle(all, random);
  all.resize(static_cast<std::size_t>(count));
  std::sort(all.begin(), all.end());
  return all;
}

DraftTeacher part_of(const DraftTeacher& teacher, const torch::Tensor& which) {
  return {teacher.rows.index_select(0, which), teacher.probabilities.index_select(0, which)};
}

}  // namespace

std::vector<DraftStep::Job> DraftStep::plan(std::int64_t texts, Random& random) const {
  const DraftShape& shape = draft_.shape();
  std::vector<Job> jobs;
  jobs.push_back({{shape.widest(), false}, some_texts(texts, texts, random)});
  const auto part = std::max<std::int64_t>(1, std::lround(static_cast<double>(texts) * options_.narrow_part));
  if (shape.widths() > 1) jobs.push_back({{0, false}, some_texts(texts, part, random)});
  std::vector<DraftMode> between;
  for (const DraftMode& mode : draft_modes(shape)) {
    if (mode.exit || (mode.width > 0 && mode.width < shape.widest())) between.push_back(mode);
  }
  if (!between.empty())
    jobs.push_back({between[random.below(between.size())], some_texts(texts, part, random)});
  shuffle(jobs, random);
  return jobs;
}

// K and V of earlier passes for a pass over `texts`, each up to a random switch point; nothing if none is to
// be read.
std::optional<OtherKv> DraftStep::others(const std::vector<std::int64_t>& texts, const Shared& shared,
                                         Random& random) const {
  const std::int64_t length = shared.batch.tokens.size(1);
  std::vector<std::int64_t> switches(texts.size(), 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool chosen = random.uniform() < options_.switch_chance;
    if (!chosen || !shared.seen[static_cast<std::size_t>(texts[i])]) continue;
    switches[i] = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(length)));
  }
  if (std::all_of(switches.begin(), switches.end(), [](std::int64_t s) { return s == 0; }))
    return std::nullopt;
  OtherKv other;
  const torch::Tensor until = torch::tensor(switches, torch::kInt64).view({-1, 1, 1, 1});
  other.take = torch::arange(length, torch::kInt64).view({1, 1, length, 1}) < until;
  const torch::Tensor which = torch::tensor(texts, torch::kInt64);
  for (const DraftKv& kv : shared.kv)
    other.blocks.push_back({kv.k.index_select(0, which), kv.v.index_select(0, which)});
  return other;
}

void DraftStep::remember(const std::vector<std::int64_t>& texts, const DraftPass& pass, Shared& shared) {
  const torch::Tensor which = torch::tensor(texts, torch::kInt64);
  for (std::size_t i = 0; i < pass.kv.size(); ++i) {
    if (shared.kv.size() <= i) {
      std::vector<std::int64_t> sizes = pass.kv[i].k.sizes().vec();
      sizes[0] = static_cast<std::int64_t>(shared.seen.size());
      const auto options = pass.kv[i].k.options();
      shared.kv.push_back({torch::zeros(sizes, options), torch::zeros(sizes, options)});
    }
    shared.kv[i].k.index_copy_(0, which, pass.kv[i].k.detach());
    shared.kv[i].v.index_copy_(0, which, pass.kv[i].v.detach());
  }
  for (const std::int64_t text : texts) shared.seen[static_cast<std::size_t>(text)] = true;
}

void DraftStep::run(const Job& job, Shared& shared, Random& random) {
  const DraftBatch& batch = shared.batch;
  const std::int64_t length = batch.tokens.size(1), texts = batch.tokens.size(0);
  const torch::Tensor which = torch::tensor(job.texts, torch::kInt64);
  const std::optional<OtherKv> other = others(job.texts, shared, random);
  const DraftPass pass =
      draft_.forward_embedded(shared.embedded.index_select(0, which), job.mode, other ? &*other : nullptr);
  remember(job.texts, pass, shared);

  // The taught positions of these texts: their place in the batch, and in this pass.
  torch::Tensor place_of = torch::full({texts}, -1, torch::kInt64);
  place_of.index_copy_(0, which, torch::arange(which.size(0), torch::kInt64));
  const torch::Tensor place = place_of.index_select(0, shared.text_of);
  const torch::Tensor taught = (place >= 0).nonzero().flatten();
  if (taught.size(0) == 0) return;
  const torch::Tensor rows =
      place.index_select(0, taught) * length + batch.positions.index_select(0, taught) % length;
  const torch::Tensor logits = draft_.logits(pass.hidden.flatten(0, 1).index_select(0, rows), shared.head);

  const bool widest = job.mode == DraftMode{draft_.shape().widest(), false};
  torch::Tensor guide;
  if (!widest && options_.imitate > 0 && shared.widest.defined())
    guide = shared.widest.index_select(0, taught);
  const Sharpened sharpened = {shared.sharpened.named.index_select(0, taught),
                               shared.sharpened.rest.index_select(0, taught)};
  const LossResult result = draft_loss(logits, part_of(batch.teacher, taught), sharpened, shared.candidates,
                                       options_.loss, guide, options_.imitate);
  if (widest && options_.imitate > 0) shared.widest = result.softmax;
  shared.losses.push_back({job.mode, result.loss, result.acceptance});
  logits.backward(result.gradient);
}

// Gradients of what was taken out go where it was taken from.
void DraftStep::bring_back(const Shared& shared) {
  torch::NoGradGuard no_grad;
  const auto gradient_of = [](torch::Tensor& parameter) {
    if (!parameter.grad().defined()) parameter.mutable_grad() = torch::zeros_like(parameter);
    return parameter.grad();
  };
  if (shared.head.grad().defined()) {
    torch::Tensor gradient = gradient_of(draft_.head);
    if (shared.candidates.rows.defined()) {
      gradient.index_add_(0, shared.candidates.rows, shared.head.grad());
    } else {
      gradient.add_(shared.head.grad());
    }
  }
  if (shared.embedded.grad().defined()) {
    const torch::Tensor place = draft_.place(shared.batch.tokens.flatten());
    const torch::Tensor used = (place >= 0).nonzero().flatten();
    gradient_of(draft_.used_embedding)
        .index_add_(0, place.index_select(0, used),
                    shared.embedded.grad().flatten(0, 1).index_select(0, used));
  }
}

std::vector<ModeLoss> DraftStep::accumulate(const DraftBatch& batch, Random& random) {
  const std::int64_t texts = batch.tokens.size(0), length = batch.tokens.size(1);
  Shared shared{batch, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  {
    torch::NoGradGuard no_grad;
    shared.sharpened = sharpen(batch.teacher, options_.loss.temperature);
    shared.candidates = options_.full_head ? all_candidates(draft_.shape().head_rows)
                                           : choose_candidates(batch.teacher, shared.sharpened, by_use_,
                                                               options_.candidates, random);
    const torch::Tensor& rows = shared.candidates.rows;
    shared.head = rows.defined() ? draft_.head.index_select(0, rows) : draft_.head.clone();
    shared.embedded = draft_.embed(batch.tokens.flatten()).view({texts, length, -1});
    shared.text_of = torch::div(batch.positions, length, "floor");
  }
  shared.seen.resize(static_cast<std::size_t>(texts));
  shared.head.requires_grad_();
  shared.embedded.requires_grad_(draft_.used_embedding.requires_grad());
  for (const Job& job : plan(texts, random)) run(job, shared, random);
  bring_back(shared);
  return shared.losses;
}

}  // namespace coppice::core::train
