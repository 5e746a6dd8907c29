// Small right n-gram files: both token widths, pruned and not, every count width, long and short orders.
#include "draft/katz.h"
#include "seeds.h"

namespace coppice::core {
namespace {

std::vector<std::byte> build(const KatzBuildOptions& options, int length, int distinct) {
  KatzBuilder builder(options);
  std::vector<Token> text;
  for (int i = 0; i < length; ++i) text.push_back((i % 97 * (i % 89) / 3 + i / 7) % distinct);
  builder.add(text);
  builder.add(std::vector<Token>{1, 2, 3, 1, 2, 3, 1});
  return builder.to_bytes();
}

void write_seeds(const std::string& folder) {
  KatzBuildOptions options;
  options.vocab = 30;
  options.order = 2;
  options.provenance = "seed";
  write_seed(folder, "small", build(options, 12, 5));
  write_seed(folder, "heads", build(options, 300, 25));
  options.order = 8;
  write_seed(folder, "long", build(options, 40, 6));
  options.order = 3;
  options.min_count = {1, 1, 2, 2};
  write_seed(folder, "pruned", build(options, 60, 6));
  options.max_continuations = 2;
  write_seed(folder, "few", build(options, 60, 9));
  options = {};
  options.order = 1;
  options.vocab = 70000;
  write_seed(folder, "wide", build(options, 400, 2));
  options.order = 0;
  write_seed(folder, "counts", build(options, 70000, 1));
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seeds(arguments[1]);
}
