#include "train/draft_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace coppice::core::train {
namespace {

constexpr int kBlock = 32;  // values of a quantised block: a slice ends where a block ends

int whole_blocks(double size) {
  const double blocks = size / kBlock;
  return std::max(1, static_cast<int>(std::lround(blocks))) * kBlock;
}

// The first half of them from the target's start, the others from its end: 0, L-1 or 0, 1, L-2, L-1.
std::vector<int> first_and_last(int layers, int target_layers) {
  std::vector<int> from;
  const int head = (layers + 1) / 2;
  for (int i = 0; i < layers; ++i) from.push_back(i < head ? i : target_layers - layers + i);
  return from;
}

Status check_factors(const std::vector<double>& factors, double widest) {
  if (factors.empty()) return fail("--widths names no width; 0.5,0.75,1,1.25,1.5 are usual");
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!(factors[i] > 0) || factors[i] > widest + 1e-6 || (i > 0 && factors[i] <= factors[i - 1])) {
      return fail(
          fmt::format("--widths must rise and lie above 0 and at most {:.3g}, where a draft is as wide as "
                      "its target, but has {}",
                      widest, factors[i]));
    }
  }
  return {};
}

Status choose_heads(const DraftShapeOptions& options, const ModelConfig& target, DraftShape& shape) {
  shape.heads = options.heads > 0 ? options.heads : target.heads;
  shape.kv_heads = options.kv_heads > 0 ? options.kv_heads : target.kv_heads;
  if (options.kv_heads <= 0 && shape.heads % shape.kv_heads != 0) shape.kv_heads = shape.heads;
  if (shape.heads % shape.kv_heads != 0) {
    return fail(fmt::format("{} heads cannot share {} KV heads; say a --kv-heads that divides them",
                            shape.heads, shape.kv_heads));
  }
  return {};
}

Status choose_exit(const DraftShapeOptions& options, DraftShape& shape) {
  shape.exit_layer = options.exit_layer < 0 ? std::min(2, shape.layers - 1) : options.exit_layer;
  if (shape.exit_layer >= shape.layers) {
    return fail(fmt::format("--exit-layer {}: a draft of {} layers has exits after 1 to {}", shape.exit_layer,
                            shape.layers, shape.layers - 1));
  }
  if (shape.exit_layer == 0) return {};
  const auto at = std::find_if(shape.factors.begin(), shape.factors.end(),
                               [&](double f) { return std::abs(f - options.exit_factor) < 1e-6; });
  if (at != shape.factors.end()) {
    shape.exit_width = static_cast<int>(at - shape.factors.begin());
  } else if (options.exit_layer < 0) {
    shape.exit_layer = 0;  // nobody asked for it
  } else {
    return fail(fmt::format("the exit's width {} is not among --widths", options.exit_factor));
  }
  return {};
}

}  // namespace

Result<DraftShape> make_draft_shape(const DraftShapeOptions& options, const ModelConfig& target,
                                    int head_rows) {
  if (!plain_llama(target)) {
    return fail(fmt::format(
        "a draft is made from a llama with nothing special (biases, windows, scaled positions or values); "
        "the target's architecture is {}",
        target.architecture));
  }
  if (target.rope_dims != target.head_dim) {
    return fail("a draft is made from a target whose heads are rotated as a whole");
  }
  if (options.layers < 1 || options.layers > target.layers) {
    return fail(fmt::format("--layers {}: 1 to {} are possible", options.layers, target.layers));
  }
  if (options.hidden < 0 || options.hidden > target.hidden)
    return fail(
        fmt::format("--hidden {}: 32 to the target's {} are possible", options.hidden, target.hidden));
  const double share = options.hidden > 0
                           ? static_cast<double>(options.hidden) / target.hidden  // at factor 1
                           : 1 / kWidestFactor;
  COPPICE_TRY_STATUS(check_factors(options.factors, 1 / share));
  DraftShape shape;
  shape.factors = options.factors;
  for (const double factor : options.factors) {
    shape.hidden.push_back(whole_blocks(target.hidden * share * factor));
    shape.feed_forward.push_back(whole_blocks(target.feed_forward * share * factor));
    if (shape.hidden.back() > target.hidden || shape.feed_forward.back() > target.feed_forward) {
      return fail("a draft's target must have a hidden size and feed-forward size that are multiples of 32");
    }
  }
  if (std::adjacent_find(shape.hidden.begin(), shape.hidden.end(), std::greater_equal<>()) !=
      shape.hidden.end()) {
    return fail("two of --widths give the same hidden size, for widths are multiples of 32; name fewer");
  }
  shape.layers = options.layers;
  shape.head_dim = target.head_dim;
  shape.vocab = target.vocab;
  shape.head_rows = head_rows;
  shape.context_length = target.context_length;
  shape.norm_eps = target.norm_eps;
  shape.rope_base = target.rope_base;
  shape.from = options.from.empty() ? first_and_last(options.layers, target.layers) : options.from;
  if (static_cast<int>(shape.from.size()) != shape.layers) {
    return fail(fmt::format("--source-layers names {} layers, but the draft has {}", shape.from.size(),
                            shape.layers));
  }
  for (const int layer : shape.from) {
    if (layer < 0 || layer >= target.layers) {
      return fail(
          fmt::format("--source-layers names layer {}; the target has 0 to {}", layer, target.layers - 1));
    }
  }
  COPPICE_TRY_STATUS(choose_heads(options, target, shape));
  COPPICE_TRY_STATUS(choose_exit(options, shape));
  return shape;
}

std::vector<DraftMode> draft_modes(const DraftShape& shape) {
  std::vector<DraftMode> modes;
  for (int w = 0; w < shape.widths(); ++w) modes.push_back({w, false});
  if (shape.exit_layer > 0) modes.push_back({shape.exit_width, true});
  return modes;
}

std::string mode_name(const DraftShape& shape, const DraftMode& mode) {
  const int hidden = shape.hidden[static_cast<std::size_t>(mode.width)];
  return mode.exit ? fmt::format("w{}-exit{}", hidden, shape.exit_layer) : fmt::format("w{}", hidden);
}

}  // namespace coppice::core::train
