// The smallest models of each architecture, and a slimmable one.
#include "base/check.h"
#include "model/architectures.h"
#include "model/random_model.h"
#include "seeds.h"

namespace coppice::core {
namespace {

void write_seeds(const std::string& folder) {
  RandomModelOptions options;
  options.vocab = 260;
  options.hidden = 32;
  options.layers = 1;
  options.heads = 2;
  options.kv_heads = 2;
  options.feed_forward = 32;
  options.context_length = 8;
  options.formats = {"Q4_0"};
  options.embedding_format = "Q4_0";
  for (const Architecture& row : architectures()) {
    options.architecture = std::string(row.name);
    // Architectures that random models are not made of have none.
    if (const auto bytes = random_model(options)) write_seed(folder, options.architecture, *bytes);
  }
  options.architecture = "llama";
  options.hidden = options.feed_forward = 64;
  options.slim.factors = {0.5f, 1.0f};
  options.slim.hidden = options.slim.feed_forward = {32, 64};
  const auto slim = random_model(options);
  COPPICE_CHECK(slim);
  write_seed(folder, "slim", *slim);
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seeds(arguments[1]);
}
