// Any GGUF file as a gate: refused with a sentence, or it says a factor for anything it sees.
#include <vector>

#include "base/check.h"
#include "policy/gate.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const auto file = core::gguf::File::parse(std::as_bytes(std::span(data, size)), "input");
  if (!file) return 0;
  const auto gate = core::Gate::parse(**file);
  if (!gate) {
    COPPICE_CHECK(gate.error().message.starts_with("input: "));
    return 0;
  }
  const auto hidden = static_cast<std::size_t>(gate->hidden());
  for (const float value : {0.0f, 1.0f, -1e30f, 3e38f}) {
    const std::vector<float> input(hidden, value);
    const float alpha = gate->alpha({input, input});
    COPPICE_CHECK(alpha >= core::kLeastAlpha && alpha <= core::kMostAlpha);
  }
  return 0;
}
