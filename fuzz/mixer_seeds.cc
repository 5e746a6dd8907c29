// The prior that is built in, and the smallest.
#include "draft/prior.h"
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  using namespace coppice::core;
  MixerPrior one = builtin_prior();
  write_seed(arguments[1], "builtin", to_string(one));
  for (std::size_t i = 0; i < one.sections.size(); ++i) {
    MixerPrior part;
    part.sections.push_back(one.sections[i]);
    write_seed(arguments[1], "section" + std::to_string(i), to_string(part));
  }
  write_seed(arguments[1], "none", std::string(kPriorMagic) + "\n");
}
