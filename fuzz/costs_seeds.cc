// As save_costs() writes them: one size of pass, and three.
#include "policy/cost_model.h"
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  using namespace coppice::core;
  const std::string folder = arguments[1];
  CostTable one;
  one.points = {{1, 0.01}};
  CostTable three;
  three.points = {{1, 0.01}, {4, 0.0125}, {64, 0.1}};
  three.per_position = 1e-7;
  three.per_row_position = 3e-9;
  three.prompt_row = 0.8;
  return save_costs(folder + "/one", "key", one) && save_costs(folder + "/three", "key", three) ? 0 : 1;
}
