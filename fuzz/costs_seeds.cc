// As save_costs() writes them.
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seed(arguments[1], "one", "coppice costs 1\nkey\nrows 1 0.01\ncontext 0 0 1\nend\n");
  coppice::core::write_seed(
      arguments[1], "three",
      "coppice costs 1\nkey\nrows 1 0.01\nrows 4 0.0125\nrows 64 0.1\ncontext 1e-07 3e-09 0.8\nend\n");
}
