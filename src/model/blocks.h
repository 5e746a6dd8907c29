// Which blocks of a model matter most: what `self` drafts with, and what `coppice eval blocks` shows.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "model/model.h"

namespace coppice::core {

// Per block: 1 - cosine of the residual stream before and after it, the mean over the positions of a text
// (the block influence of ShortGPT, arXiv:2403.03853). One pass over the text; at least 2 tokens.
Result<std::vector<double>> block_influence(std::shared_ptr<const Model> model, std::span<const Token> tokens,
                                            ThreadPool& pool);

// The `count` blocks of greatest influence, in order; the first and the last block always belong to them,
// since nothing stands in for what they do. count: from 1 to all.
std::vector<int> most_influential(std::span<const double> influence, int count);

// Removes block by block the one without which the model still says most often, as its first choice, what the
// whole model says.
struct Removal {
  int block = 0;
  double agreement = 0;  // of the positions of the text, once this block and those before it are gone
};
// Tries every block that is left, `count` times; `progress` (optional) hears the fraction done, and stops it
// by returning false (what was found so far is returned).
Result<std::vector<Removal>> removal_order(std::shared_ptr<const Model> model, std::span<const Token> tokens,
                                           int count, ThreadPool& pool,
                                           const std::function<bool(double)>& progress = {});

}  // namespace coppice::core
