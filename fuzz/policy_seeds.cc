// Each policy by its name, and adaptive with options of every kind.
#include "policy/policy.h"
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  using namespace coppice::core;
  for (const PolicyRow& row : policy_rows()) write_seed(arguments[1], std::string(row.name), row.name);
  const std::string_view seeds[] = {
      "adaptive(gate=off, exit=off)",
      "adaptive(gate=\"my gate.gguf\", tau=0.25, batch=4)",
      "adaptive-fitted(analyser=off)",
      "adaptive(tau=1e300, batch=-1)",
  };
  for (std::size_t i = 0; i < std::size(seeds); ++i) write_seed(arguments[1], std::to_string(i), seeds[i]);
}
