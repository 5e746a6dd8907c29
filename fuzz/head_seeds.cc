// Random heads of every form for the target's model, which the shape below is too.
#include "model/random_head.h"
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  using namespace coppice::core;
  ModelConfig target;
  target.vocab = 260;
  target.hidden = target.head_dim = target.feed_forward = 32;
  target.layers = 2;
  target.heads = target.kv_heads = 1;
  RandomHeadOptions whole;
  RandomHeadOptions few;
  few.rows = 32;
  few.own_embedding = few.standardised = few.norm_before_residual = true;
  RandomHeadOptions old = few;
  old.old_names = true;
  RandomHeadOptions shares;
  shares.own_output = false;
  shares.formats = {"Q8_0", "F16"};
  int number = 0;
  for (const RandomHeadOptions& options : {whole, few, old, shares}) {
    const auto bytes = random_head(target, options);
    if (!bytes) {
      std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
      return 1;
    }
    write_seed(arguments[1], std::to_string(number++), *bytes);
  }
}
