// Any text as a file of measured costs: refused with a sentence, or a model of costs that gives every pass
// some seconds.
#include <cmath>

#include "base/check.h"
#include "policy/cost_model.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto table = core::parse_costs(text, "key", "input");
  if (!table) {
    COPPICE_CHECK(table.error().message.starts_with("input: "));
    return 0;
  }
  core::CostModel model(*table);
  for (const double rows : {1.0, 3.5, 64.0, 1e6}) {
    core::PassShape pass;
    pass.rows = rows;
    pass.positions = pass.row_positions = 1000;
    COPPICE_CHECK(model.seconds(pass) > 0);
  }
  return 0;
}
