#include "model/random_model.h"

#include <coppice/tools.h>

#include <cmath>

#include "base/check.h"
#include "base/os.h"
#include "model/architectures.h"
#include "model/random_head.h"

namespace coppice {

namespace {

// Widths as wide as their factors say, to the nearest multiple of 32.
Status add_widths(const RandomModelOptions& options, core::RandomModelOptions& shape) {
  core::SlimWidths& slim = shape.slim;
  slim.factors = options.slim;
  slim.exit_layer = options.exit_layer;
  if (options.slim.empty() && options.exit_layer > 0)
    return fail("exit_layer = " + std::to_string(options.exit_layer) +
                ": only a slimmable model has an exit");
  for (std::size_t i = 0; i < options.slim.size(); ++i) {
    const double part = static_cast<double>(options.slim[i]) / static_cast<double>(options.slim.back());
    const auto width = [part](int whole) { return static_cast<int>(std::lround(part * whole / 32)) * 32; };
    slim.hidden.push_back(width(shape.hidden));
    slim.feed_forward.push_back(width(shape.feed_forward));
    if (options.slim[i] == options.exit_factor) slim.exit_width = static_cast<int>(i);
  }
  return {};
}

}  // namespace

Result<RandomModelReport> write_random_model(const RandomModelOptions& options) {
  core::RandomModelOptions shape;
  shape.architecture = options.architecture;
  shape.seed = options.seed;
  shape.vocab = options.vocab;
  shape.hidden = options.hidden;
  shape.layers = options.layers;
  shape.heads = options.heads;
  shape.kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  shape.head_dim = options.head_dim;
  constexpr int kWidest = 1 << 16;
  shape.feed_forward =
      options.feed_forward == 0 && options.hidden < kWidest ? 4 * options.hidden : options.feed_forward;
  shape.context_length = options.context_length;
  shape.window = options.window;
  shape.experts = options.experts;
  shape.experts_used = options.experts_used;
  shape.formats = options.formats;
  shape.embedding_format = options.embedding_format;
  shape.tied_head = options.tied_head;
  COPPICE_TRY_STATUS(add_widths(options, shape));
  core::ThreadPool pool(options.threads > 0 ? options.threads : core::usable_cores());
  COPPICE_TRY(const auto size, core::write_random_model(shape, options.output, pool, options.progress));
  return RandomModelReport{size.parameters, size.bytes};
}

Status write_random_head(const RandomHeadOptions& options) {
  COPPICE_TRY(const auto file, core::gguf::File::open(options.target));
  COPPICE_TRY(const core::ModelConfig target, core::read_config(*file));
  core::RandomHeadOptions shape;
  shape.seed = options.seed;
  shape.rows = options.vocabulary;
  shape.formats = options.formats;
  shape.feature_layers = options.feature_layers;
  shape.standardised = options.standardised;
  shape.norm_before_residual = options.norm_before_residual;
  shape.own_embedding = options.own_embedding;
  return core::write_random_head(target, shape, options.output);
}

}  // namespace coppice
