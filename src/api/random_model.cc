#include "model/random_model.h"

#include <coppice/tools.h>

#include "base/check.h"
#include "base/os.h"

namespace coppice {

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
  shape.formats = options.formats;
  shape.embedding_format = options.embedding_format;
  shape.tied_head = options.tied_head;
  core::ThreadPool pool(options.threads > 0 ? options.threads : core::usable_cores());
  COPPICE_TRY(const auto size, core::write_random_model(shape, options.output, pool, options.progress));
  return RandomModelReport{size.parameters, size.bytes};
}

}  // namespace coppice
