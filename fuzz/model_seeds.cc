// The smallest random model of every architecture, with a window and experts where it may have them.
#include <fmt/format.h>

#include "model/architectures.h"
#include "model/random_model.h"
#include "seeds.h"

namespace coppice::core {
namespace {

void write_model(const std::string& folder, const std::string& name, RandomModelOptions options,
                 int hidden = 32) {
  options.vocab = 260;
  options.hidden = options.feed_forward = hidden;
  options.heads = options.kv_heads = 2;
  options.context_length = 8;
  options.formats = {"Q8_0", "F32"};
  const auto bytes = random_model(options);
  if (bytes) {
    write_seed(folder, name, *bytes);
    return;
  }
  std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
  std::exit(1);
}

}  // namespace
}  // namespace coppice::core

int main(int, char** arguments) {
  namespace core = coppice::core;
  for (const core::Architecture& row : core::architectures()) {
    core::RandomModelOptions options;
    options.architecture = row.name;
    options.window = row.window_period > 0 ? 2 : 0;
    core::write_model(arguments[1], options.architecture, options);
  }
  core::RandomModelOptions experts;
  experts.experts = 3;
  core::write_model(arguments[1], "experts", experts);
  core::RandomModelOptions slim;
  slim.slim.factors = {0.5f, 1.0f};
  slim.slim.hidden = slim.slim.feed_forward = {32, 64};
  core::write_model(arguments[1], "slim", slim, 64);
}
