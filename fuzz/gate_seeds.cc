// A gate with weights of its own, and one that always says the same.
#include "policy/gate.h"
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  using namespace coppice::core;
  GateWeights w;
  w.hidden = 2;
  w.layer = 3;
  w.units = 2;
  w.mean = {1, 0, 0, 2};
  w.scale = {2, 1, 1, 0.5f};
  w.in = {1, 0, 0, 1, -1, 0.5f, 0.25f, 0};
  w.in_bias = {0.5f, -1};
  w.out = {1, -2};
  w.out_bias = 0.25f;
  write_seed(arguments[1], "small", gate_bytes(Gate(w, {"t.gguf", "00", "d.gguf", "11", "text", "command"})));
  write_seed(arguments[1], "constant", gate_bytes(Gate::constant(1.25f, 8, 0)));
}
