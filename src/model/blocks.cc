#include "model/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr int kRows = 64;  // of a pass

// Calls `seen` after every pass over a part of the tokens, with its number of rows.
Status read_text(std::shared_ptr<const Model> model, std::span<const Token> tokens, unsigned wants,
                 LayerTap* tap, ThreadPool& pool,
                 const std::function<void(const Context& context, int rows)>& seen) {
  const int count = static_cast<int>(tokens.size());
  if (count < 2) return fail("the text has fewer than 2 tokens; at least 2 are needed");
  ContextOptions options;
  options.max_rows = kRows;
  options.max_logits = (wants & kLogits) != 0 ? kRows : 0;
  options.kv = {CacheType::f16, 1, count, 1};
  COPPICE_TRY(auto context, Context::make(std::move(model), options, pool));
  COPPICE_TRY(const int sequence, context->cache().open());
  COPPICE_TRY_STATUS(context->cache().reserve(sequence, count));
  context->set_tap(tap);
  std::vector<Row> rows;
  for (int begin = 0; begin < count; begin += kRows) {
    rows.clear();
    for (int i = begin; i < std::min(count, begin + kRows); ++i)
      rows.push_back({sequence, tokens[static_cast<std::size_t>(i)], i, kCommitted, kCommitted, wants});
    COPPICE_TRY_STATUS(context->forward(rows));
    seen(*context, static_cast<int>(rows.size()));
  }
  return {};
}

double cosine(const float* a, const float* b, std::size_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  const double length = std::sqrt(aa) * std::sqrt(bb);
  return length > 0 ? ab / length : 1.0;
}

class Influence : public LayerTap {
 public:
  Influence(int layers, int hidden)
      : change_(static_cast<std::size_t>(layers)),
        hidden_(static_cast<std::size_t>(hidden)),
        before_(kRows * hidden_) {}

  void matmul(const char* tensor, const MatmulTask& task, const float* x) override {
    (void)tensor, (void)task, (void)x;
  }
  void residual(int layer, const float* x, int rows) override {
    for (std::size_t row = 0; layer > 0 && row < static_cast<std::size_t>(rows); ++row)
      change_[static_cast<std::size_t>(layer - 1)] +=
          1.0 - cosine(&before_[row * hidden_], x + row * hidden_, hidden_);
    std::copy_n(x, static_cast<std::size_t>(rows) * hidden_, before_.begin());
  }
  std::vector<double> mean(std::size_t positions) const {
    std::vector<double> out = change_;
    for (double& change : out) change /= static_cast<double>(positions);
    return out;
  }

 private:
  std::vector<double> change_;  // [layers], summed over positions
  std::size_t hidden_;
  std::vector<float> before_;  // [rows, hidden]
};

Result<std::vector<int>> first_choices(std::shared_ptr<const Model> model, std::span<const Token> tokens,
                                       ThreadPool& pool) {
  std::vector<int> choices;
  const int vocab = model->config().vocab;
  COPPICE_TRY_STATUS(
      read_text(std::move(model), tokens, kLogits, nullptr, pool, [&](const Context& context, int rows) {
        for (int row = 0; row < rows; ++row)
          choices.push_back(kernels().argmax(context.logits(row).data(), vocab));
      }));
  return choices;
}

}  // namespace

Result<std::vector<double>> block_influence(std::shared_ptr<const Model> model, std::span<const Token> tokens,
                                            ThreadPool& pool) {
  Influence influence(model->config().layers, model->config().hidden);
  COPPICE_TRY_STATUS(
      read_text(std::move(model), tokens, kHidden, &influence, pool, [](const Context&, int) {}));
  return influence.mean(tokens.size());
}

std::vector<int> most_influential(std::span<const double> influence, int count) {
  const int layers = static_cast<int>(influence.size());
  COPPICE_CHECK(count >= 1 && count <= layers);
  std::vector<int> blocks(influence.size());
  std::iota(blocks.begin(), blocks.end(), 0);
  const auto rank = [&](int block) { return block == 0 ? 0 : block == layers - 1 ? 1 : 2; };
  std::stable_sort(blocks.begin(), blocks.end(), [&](int a, int b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return influence[static_cast<std::size_t>(a)] > influence[static_cast<std::size_t>(b)];
  });
  blocks.resize(static_cast<std::size_t>(count));
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

Result<std::vector<Removal>> removal_order(std::shared_ptr<const Model> model, std::span<const Token> tokens,
                                           int count, ThreadPool& pool,
                                           const std::function<bool(double)>& progress) {
  COPPICE_TRY(const std::vector<int> whole, first_choices(model, tokens, pool));
  std::vector<int> left(static_cast<std::size_t>(model->config().layers));
  std::iota(left.begin(), left.end(), 0);
  count = std::min(count, static_cast<int>(left.size()) - 1);
  int trials = 0, done = 0;
  for (int i = 0; i < count; ++i) trials += static_cast<int>(left.size()) - i;
  std::vector<Removal> order;
  while (static_cast<int>(order.size()) < count) {
    Removal best{-1, -1.0};
    for (const int block : left) {
      if (progress && !progress(static_cast<double>(done++) / trials)) return order;
      std::vector<int> rest;
      std::copy_if(left.begin(), left.end(), std::back_inserter(rest),
                   [&](int other) { return other != block; });
      COPPICE_TRY(const std::vector<int> choices, first_choices(Model::of_blocks(model, rest), tokens, pool));
      int same = 0;
      for (std::size_t i = 0; i < whole.size(); ++i) same += choices[i] == whole[i];
      const double agreement = same / static_cast<double>(whole.size());
      if (agreement > best.agreement) best = {block, agreement};
    }
    std::erase(left, best.block);
    order.push_back(best);
  }
  return order;
}

}  // namespace coppice::core
