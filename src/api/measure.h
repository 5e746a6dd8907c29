// Timing in turn, and what this machine can do at best.
#pragma once

#include <coppice/bench.h>

#include <functional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/row.h"

namespace coppice {

// One thing that is timed: prepare() is not, run() is.
struct Timed {
  std::function<Status()> run;
  std::function<Status()> prepare = [] { return Status(); };
  std::vector<double> seconds = {};  // by round
};

// `rounds` rounds, each over everything; who begins rotates. One more round before them is not timed.
// `progress` hears the part of [from, to) that is done.
struct Stretch {
  double from = 0, to = 1;
};
Status alternate(std::span<Timed> all, int rounds, const BenchProgress& progress, std::string_view what,
                 Stretch stretch = {});

// The rows of a pass as the engine makes them for a tree, at `context` committed positions: two children a
// node, row i hangs on row (i - 1) / 2; the root is committed, the others lie in scratch slots, all want
// logits. Which tokens they are changes nothing.
void make_tree_rows(std::vector<core::Row>& rows, int sequence, int count, int context, int vocab);
Token some_token(int position, int vocab);

Spread spread_of(std::vector<double> values);
Spread divided(std::span<const double> numerators, std::span<const double> denominators);  // by round
Spread divided(double numerator, std::span<const double> denominators);

// The limits of this machine, with the kernels and threads at hand.
class Limits {
 public:
  Limits(core::ThreadPool& pool, const core::Kernels& kernels);
  // All threads read all bytes once, each its share of every part, in the order of the parts (as a pass reads
  // its matrices: what is left in the caches then helps both alike). Whole lines, no barriers.
  void read(std::span<const std::span<const std::byte>> parts) const;
  // Multiply-adds of all threads; a few milliseconds of them.
  double int8() const { return work(kernels_.int8_peak, int8_rounds_); }
  double f32() const { return work(kernels_.f32_peak, f32_rounds_); }
  Result<MachineSpeed> speed(int rounds, const BenchProgress& progress) const;

 private:
  using Peak = double (*)(std::int64_t rounds);
  double work(Peak peak, std::int64_t rounds) const;
  std::int64_t long_enough(Peak peak) const;

  core::ThreadPool& pool_;
  const core::Kernels& kernels_;
  std::int64_t int8_rounds_, f32_rounds_;
};

Status check_repeats(int repeats);
// "rows = 0: ..." where a value is not from `least` to `most`.
Status check_range(const char* field, std::span<const int> values, int least, int most);

}  // namespace coppice
