#include "train/draft_loss.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace coppice::core::train {
namespace {

constexpr double kTiny = 1e-9;       // where a probability is 0, its logarithm is that of this
constexpr double kMixSharpness = 3;  // of lambda = exp(-sharpness * acceptance)

// t log(t / q), 0 where t is 0.
torch::Tensor divergence(const torch::Tensor& t, const torch::Tensor& q) {
  return t * (t.clamp_min(kTiny).log() - q.clamp_min(kTiny).log());
}

// By token [n], out of t and q [n, K]; what is not named is 1 minus the sum of what is.
torch::Tensor loss_by_token(const torch::Tensor& t, const torch::Tensor& q, DraftLoss kind,
                            torch::Tensor& acceptance) {
  const torch::Tensor t_rest = (1 - t.sum(1)).clamp_min(0), q_rest = (1 - q.sum(1)).clamp_min(0);
  const torch::Tensor accepted = torch::minimum(t, q).sum(1) + torch::minimum(t_rest, q_rest);
  acceptance = accepted.detach();
  if (kind == DraftLoss::tv) return 1 - accepted;
  if (kind == DraftLoss::lk) return -accepted.clamp_min(kTiny).log();
  const torch::Tensor kl = divergence(t, q).sum(1) + divergence(t_rest, q_rest);
  if (kind == DraftLoss::kl) return kl;
  const torch::Tensor lambda = torch::exp(acceptance * -kMixSharpness);
  return lambda * kl + (1 - lambda) * (1 - accepted);
}

// `count` of `from`, each as likely as any other.
std::vector<std::int64_t> draw(std::vector<std::int64_t> from, std::size_t count, Random& random) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t other = i + random.below(from.size() - i);
    std::swap(from[i], from[other]);
  }
  from.resize(count);
  return from;
}

}  // namespace

Result<DraftLoss> parse_draft_loss(std::string_view name) {
  if (name == "kl") return DraftLoss::kl;
  if (name == "tv") return DraftLoss::tv;
  if (name == "lk") return DraftLoss::lk;
  if (name == "mix") return DraftLoss::mix;
  return fail(fmt::format("--loss {}: kl, tv, lk and mix are possible", name));
}

Sharpened sharpen(const DraftTeacher& teacher, double temperature) {
  torch::NoGradGuard no_grad;
  const torch::Tensor p = teacher.probabilities;
  const torch::Tensor powered = p.pow(1 / temperature);
  const torch::Tensor left = (1 - p.sum(1)).clamp_min(0);
  const torch::Tensor last = std::get<0>(p.min(1)) / 2;
  const torch::Tensor others = left * last.clamp_min(1e-12).pow(1 / temperature - 1);
  Sharpened out;
  out.named = (powered / (powered.sum(1) + others).clamp_min(1e-30).unsqueeze(1)) * (teacher.rows >= 0);
  out.rest = (1 - out.named.sum(1)).clamp_min(0);
  return out;
}

Candidates all_candidates(std::int64_t head_rows) {
  Candidates all;
  all.log_share = torch::zeros({head_rows});
  all.column = torch::arange(head_rows, torch::kInt64);
  return all;
}

Candidates choose_candidates(const DraftTeacher& teacher, const Sharpened& sharpened,
                             const torch::Tensor& by_use, const CandidateOptions& options, Random& random) {
  torch::NoGradGuard no_grad;
  const std::int64_t head_rows = by_use.size(0);
  const torch::Tensor marks = torch::zeros({head_rows}, torch::kInt8);
  auto* mark = marks.data_ptr<std::int8_t>();  // 1: exact, 2: stands for others
  const auto* used = by_use.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < std::min(options.always, head_rows); ++i) mark[used[i]] = 1;
  const torch::Tensor named = teacher.rows.masked_select(sharpened.named >= options.least);
  const auto* row = named.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < named.size(0); ++i) mark[row[i]] = 1;
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < head_rows; ++i) {
    if (mark[i] == 0) others.push_back(i);
  }
  const std::size_t count = std::min(others.size(), static_cast<std::size_t>(options.sampled));
  const double share = count == 0 ? 1 : static_cast<double>(others.size()) / static_cast<double>(count);
  for (const std::int64_t i : draw(std::move(others), count, random)) mark[i] = 2;
  Candidates out;
  out.rows = marks.nonzero().flatten();
  out.log_share = (marks.index_select(0, out.rows) == 2).to(torch::kFloat32) * std::log(share);
  out.column = torch::full({head_rows}, -1, torch::kInt64);
  out.column.index_copy_(0, out.rows, torch::arange(out.rows.size(0), torch::kInt64));
  return out;
}

LossResult draft_loss(const torch::Tensor& logits, const DraftTeacher& teacher, const Sharpened& sharpened,
                      const Candidates& candidates, const LossOptions& options, const torch::Tensor& guide,
                      double weight) {
  torch::NoGradGuard no_grad;
  const double n = static_cast<double>(std::max<std::int64_t>(1, logits.size(0)));
  LossResult out;
  const torch::Tensor scaled = logits.detach().to(torch::kFloat32).div(options.temperature);
  out.softmax = torch::softmax(scaled.add(candidates.log_share), 1);
  torch::Tensor column =
      candidates.column.index_select(0, teacher.rows.clamp_min(0).flatten()).view_as(teacher.rows);
  // Only what stands for itself is compared; the others belong to the rest on both sides.
  const torch::Tensor own =
      (teacher.rows >= 0) & (column >= 0) &
      (candidates.log_share.index_select(0, column.clamp_min(0).flatten()).view_as(column) == 0);
  column = column.clamp_min(0);
  const torch::Tensor t = sharpened.named * own;
  torch::Tensor q = out.softmax.gather(1, column) * own, acceptance, by_q;
  {
    torch::AutoGradMode with_gradients(true);
    q.requires_grad_();
    const torch::Tensor loss = loss_by_token(t, q, options.loss, acceptance).sum();
    by_q = torch::autograd::grad({loss}, {q})[0];
    out.loss = loss.item<double>() / n;
  }
  out.acceptance = acceptance.sum().item<double>() / n;
  // d loss / d z_j = q_j (g_j - sum over named i of g_i q_i), with g = 0 for what is not named.
  const torch::Tensor flow = by_q * q.detach();
  torch::Tensor gradient = out.softmax * (flow.sum(1, true) * -1);
  gradient.scatter_add_(1, column, flow);
  if (guide.defined() && weight > 0) gradient.add_(out.softmax - guide, weight);
  out.gradient = gradient.div_(n * options.temperature).to(logits.scalar_type());
  return out;
}

}  // namespace coppice::core::train
