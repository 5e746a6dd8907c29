#include "train/ops.h"

#include <coppice/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace coppice::core::train {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

Precision g_precision = Precision::f32;

Tensor rounded(const Tensor& x) { return x.to(torch::kBFloat16); }

// Three products of bf16 matrices with f32 results. What is kept for the backward pass is bf16: half the
// memory.
struct HalfProduct : Function<HalfProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight) {
    const Tensor a = rounded(x), w = rounded(weight);
    context->save_for_backward({a, w});
    context->saved_data["weight"] = weight.requires_grad();
    context->saved_data["x"] = x.requires_grad();
    return torch::matmul(a, w.t()).to(torch::kFloat32);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor g = rounded(gradients[0]);
    Tensor to_x, to_weight;
    if (context->saved_data["x"].toBool()) to_x = torch::matmul(g, saved[1]).to(torch::kFloat32);
    if (context->saved_data["weight"].toBool())
      to_weight = torch::matmul(g.t(), saved[0]).to(torch::kFloat32);
    return {to_x, to_weight};
  }
};

struct RmsNorm : Function<RmsNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& gain, double eps) {
    const Tensor inverse = x.square().mean(-1, true).add_(eps).rsqrt_();
    const Tensor normal = x * inverse;
    context->save_for_backward({normal, inverse, gain});
    return normal * gain;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &normal = saved[0], &inverse = saved[1], &gain = saved[2];
    const Tensor& g = gradients[0];
    const Tensor to_gain = (g * normal).reshape({-1, normal.size(-1)}).sum(0);
    Tensor scaled = g * gain;
    const Tensor along = (scaled * normal).mean(-1, true);
    return {scaled.sub_(normal * along).mul_(inverse), to_gain, Tensor()};
  }
};

struct Gated : Function<Gated> {
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up) {
    context->save_for_backward({gate, up});
    return torch::silu(gate).mul_(up);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1], &g = gradients[0];
    const Tensor sigmoid = torch::sigmoid(gate);
    const Tensor silu = gate * sigmoid;
    // silu' = sigmoid + silu (1 - sigmoid)
    const Tensor slope = sigmoid.addcmul(silu, 1 - sigmoid);
    return {slope.mul_(up).mul_(g), silu * g};
  }
};

// A pair's rotation is its own backward pass with the angle turned round.
Tensor turned(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  auto shape = x.sizes().vec();
  shape.back() /= 2;
  shape.push_back(2);
  const Tensor pairs = x.reshape(shape);
  const Tensor a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  return torch::stack({a * cosine - b * sine, a * sine + b * cosine}, -1).reshape(x.sizes());
}

struct Turn : Function<Turn> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cosine, const Tensor& sine) {
    context->save_for_backward({cosine, sine});
    return turned(x, cosine, sine);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {turned(gradients[0], saved[0], -saved[1]), Tensor(), Tensor()};
  }
};

// The teacher's probabilities at its temperature, and the mass of all that is not stored: [N, K] and [N, 1].
// For a temperature below 1 that mass is bounded from above: no token of the rest is likelier than the last
// stored one.
std::pair<Tensor, Tensor> tempered(const Tensor& logp, double temperature) {
  const Tensor p = logp.exp();
  const Tensor rest = (1 - p.sum(-1, true)).clamp_min(1e-6);
  if (temperature == 1) return {p, rest};
  const double power = 1 / temperature;
  const Tensor sharp = p.pow(power);
  const Tensor rest_sharp = rest * p.slice(-1, p.size(-1) - 1).pow(power - 1);
  const Tensor sum = sharp.sum(-1, true) + rest_sharp;
  return {sharp / sum, (rest_sharp / sum).clamp_min(1e-9)};
}

// Loss and gradient by hand: with q = softmax(l), p the teacher's, m the mass of p on tokens that the logits
// know.
//   kl: sum of p log(p / q) over stored tokens and the rest bucket     dl = m q - p            (rest alike,
//   as one token) tv: 1 - a, a = sum of min(p, q)                                    dl = a' q - q [q < p] a'
//   = sum of q where q < p lk: -log a                                                         the same over a
struct Distil : Function<Distil> {
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& at, const Tensor& logp,
                        double temperature, int64_t objective) {
    const auto [all, rest_p] = tempered(logp, temperature);
    const Tensor known = at.ge(0);
    const Tensor index = at.clamp_min(0);
    const Tensor p = all * known;
    Tensor e = (logits - logits.amax(-1, true)).exp_();
    const Tensor q = e.gather(-1, index) / e.sum(-1, true) * known;
    e.div_(e.sum(-1, true));  // the gradient is made of it, in place
    const Tensor rest_q = (1 - q.sum(-1, true)).clamp_min(1e-9);
    const Tensor mass = p.sum(-1, true) + rest_p;
    Tensor loss, rest_scale,
        at_named;  // gradient: e * rest_scale, but at_named where the teacher names tokens
    if (objective == static_cast<int64_t>(Objective::kl)) {
      const Tensor ratio = (p.clamp_min(1e-12) / q.clamp_min(1e-12)).log_() * p;
      loss = ratio.sum(-1, true) + rest_p * (rest_p / rest_q).log();
      rest_scale = mass - rest_p / rest_q;
      at_named = mass * q - p;
    } else {
      const Tensor below = q.lt(p) * q, rest_below = rest_q.lt(rest_p) * rest_q;
      const Tensor a = torch::minimum(p, q).sum(-1, true) + torch::minimum(rest_p, rest_q);
      const Tensor slope = below.sum(-1, true) + rest_below;
      const bool logarithm = objective == static_cast<int64_t>(Objective::lk);
      const Tensor by = logarithm ? 1 / a.clamp_min(1e-4) : torch::ones_like(a);
      loss = logarithm ? -a.clamp_min(1e-4).log() : 1 - a;
      rest_scale = (slope - rest_below / rest_q) * by;
      at_named = (slope * q - below) * by;
    }
    const auto rows = static_cast<double>(std::max<int64_t>(1, logits.size(0)));
    e.mul_(rest_scale);
    // Unknown tokens point at column 0, which must keep its own gradient: they add nothing to it.
    const Tensor now = e.gather(-1, index);
    e.scatter_add_(-1, index, (at_named - now) * known);
    e.div_(rows);
    context->save_for_backward({e});
    return loss.sum() / rows;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {context->get_saved_variables()[0] * gradients[0], Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

tl::unexpected<Error> torch_failed(const std::exception& error) {
  const std::string text = error.what();
  return fail("LibTorch failed: " + text.substr(0, text.find('\n')));
}

void set_precision(Precision precision) { g_precision = precision; }
Precision precision() { return g_precision; }

Tensor project(const Tensor& x, const Tensor& weight) {
  if (g_precision == Precision::f32) return torch::matmul(x, weight.t());
  const Tensor flat = x.reshape({-1, x.size(-1)});
  auto shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return HalfProduct::apply(flat, weight).reshape(shape);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) { return RmsNorm::apply(x, gain, eps); }
Tensor gated(const Tensor& gate, const Tensor& up) { return Gated::apply(gate, up); }

Rope::Rope(double base, int dims, int positions) {
  std::vector<float> c, s;
  for (int position = 0; position < positions; ++position) {
    for (int i = 0; i < dims / 2; ++i) {
      const double angle = position * std::pow(base, -2.0 * i / dims);
      c.push_back(static_cast<float>(std::cos(angle)));
      s.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  cosine = torch::tensor(c).reshape({positions, dims / 2});
  sine = torch::tensor(s).reshape({positions, dims / 2});
}

Tensor Rope::turn(const Tensor& x, int first) const {
  const auto length = x.size(1);
  const Tensor c = cosine.slice(0, first, first + length).unsqueeze(1);
  const Tensor s = sine.slice(0, first, first + length).unsqueeze(1);
  return Turn::apply(x, c, s);
}

DraftVocabulary make_vocabulary(std::vector<Token> tokens, std::int64_t vocab) {
  DraftVocabulary out;
  out.tokens = std::move(tokens);
  out.rows = torch::full({vocab}, -1, torch::kInt64);
  auto* rows = out.rows.data_ptr<int64_t>();
  for (std::size_t r = 0; r < out.tokens.size(); ++r) rows[out.tokens[r]] = static_cast<int64_t>(r);
  return out;
}

DraftVocabulary choose_vocabulary(const std::vector<std::uint64_t>& counts, int size,
                                  const std::vector<Token>& always) {
  std::vector<std::uint64_t> used = counts;
  for (Token token : always) used[static_cast<std::size_t>(token)] = ~0ull;
  std::vector<Token> tokens(used.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](Token a, Token b) {
    return used[static_cast<std::size_t>(a)] > used[static_cast<std::size_t>(b)];
  });
  if (size > 0 && static_cast<std::size_t>(size) < tokens.size())
    tokens.resize(static_cast<std::size_t>(size));
  std::sort(tokens.begin(), tokens.end());
  return make_vocabulary(std::move(tokens), static_cast<std::int64_t>(counts.size()));
}

Result<Objective> find_objective(std::string_view name) {
  if (name == "kl") return Objective::kl;
  if (name == "tv") return Objective::tv;
  if (name == "lk") return Objective::lk;
  return fail(fmt::format("objective = {}: kl, tv and lk are known", name));
}

SampledRows sample_rows(const DraftVocabulary& vocabulary, const Tensor& top, int negatives, Random& random) {
  const Tensor at_full = vocabulary.rows.index_select(0, top.reshape({-1})).reshape(top.sizes());
  if (negatives <= 0) return {torch::arange(vocabulary.size()), torch::zeros({vocabulary.size()}), at_full};
  const auto size = static_cast<std::size_t>(vocabulary.size());
  std::vector<int64_t> column(size, -1), rows;
  const Tensor flat = at_full.contiguous();
  const auto* named = flat.data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (named[i] < 0 || column[static_cast<std::size_t>(named[i])] >= 0) continue;
    column[static_cast<std::size_t>(named[i])] = static_cast<int64_t>(rows.size());
    rows.push_back(named[i]);
  }
  const std::size_t certain = rows.size(), others = size - certain;
  const std::size_t wanted = std::min<std::size_t>(others, static_cast<std::size_t>(negatives));
  if (wanted == others) {
    for (std::size_t r = 0; r < size; ++r)
      if (column[r] < 0) rows.push_back(static_cast<int64_t>(r));
  } else {
    std::vector<std::uint8_t> drawn(size, 0);
    while (rows.size() < certain + wanted) {
      const auto r = static_cast<std::size_t>(random.below(size));
      if (column[r] >= 0 || drawn[r]) continue;
      drawn[r] = 1;
      rows.push_back(static_cast<int64_t>(r));
    }
  }
  SampledRows out;
  out.rows = torch::tensor(rows, torch::kInt64);
  out.log_weight = torch::zeros({static_cast<int64_t>(rows.size())});
  if (wanted > 0)
    out.log_weight.slice(0, static_cast<int64_t>(certain))
        .fill_(std::log(static_cast<double>(others) / static_cast<double>(wanted)));
  const Tensor columns = torch::tensor(column, torch::kInt64);
  out.at = torch::where(at_full.ge(0),
                        columns.index_select(0, at_full.clamp_min(0).reshape({-1})).reshape(top.sizes()),
                        torch::full_like(at_full, -1));
  return out;
}

Tensor distil(const Tensor& logits, const Teacher& teacher) {
  return Distil::apply(logits, teacher.at, teacher.logp, teacher.temperature,
                       static_cast<int64_t>(teacher.objective));
}

void count_agreement(const Tensor& logits, const DraftVocabulary& vocabulary, const Tensor& top,
                     const Tensor& logp, Agreement& sum) {
  const Tensor at = vocabulary.rows.index_select(0, top.reshape({-1})).reshape(top.sizes());
  const Tensor known = at.ge(0), index = at.clamp_min(0);
  const Tensor choice = logits.gather(-1, index.slice(-1, 0, 1));
  const Tensor above = torch::where(known.select(-1, 0), logits.gt(choice).sum(-1),
                                    torch::full({logits.size(0)}, logits.size(1), torch::kInt64));
  const Tensor q = torch::softmax(logits, -1).gather(-1, index) * known;
  sum.tokens += static_cast<double>(logits.size(0));
  sum.top1 += above.lt(1).sum().item<double>();
  sum.top4 += above.lt(4).sum().item<double>();
  sum.top8 += above.lt(8).sum().item<double>();
  sum.overlap += torch::minimum(q, logp.exp()).sum().item<double>();
}

}  // namespace coppice::core::train
