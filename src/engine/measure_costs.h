// What passes of a context cost, measured on it: for a policy that wants to know.
#pragma once

#include <coppice/error.h>

#include <functional>

#include "model/model.h"
#include "policy/cost_model.h"

namespace coppice::core {

struct MeasureOptions {
  int context = 256;     // positions that rows may see, at least 2; 256 are enough
  int chunk = 128;       // rows of a pass of a prompt, at most
  double seconds = 0.6;  // no more rounds behind this; one is always made
  std::function<double()> clock;
};

// Runs passes on sequences of the context, all of which must be closed, and closes them again. Statistics of
// the context begin anew. Of the times of a pass the lower quartile counts.
Result<CostTable> measure_costs(Context& context, const MeasureOptions& options);

}  // namespace coppice::core
