#include "api/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/os.h"

namespace coppice {
namespace {

// Between the two nearest values, as numpy's default.
double quantile(const std::vector<double>& sorted, double at) {
  const double place = at * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Token some_token(int position, int vocab) { return static_cast<Token>((position * 7919L + 13) % vocab); }

void make_tree_rows(std::vector<core::Row>& rows, int sequence, int count, int context, int vocab) {
  rows.clear();
  for (int i = 0; i < count; ++i) {
    const int parent = (i - 1) / 2;
    core::Row row;
    row.sequence = sequence;
    row.token = some_token(context + i, vocab);
    row.position = i == 0 ? context : rows[static_cast<std::size_t>(parent)].position + 1;
    row.slot = i == 0 ? core::kCommitted : i - 1;
    row.parent_slot = i == 0 || parent == 0 ? core::kCommitted : parent - 1;
    row.wants = core::kLogits;
    rows.push_back(row);
  }
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)};
}

Spread divided(std::span<const double> numerators, std::span<const double> denominators) {
  COPPICE_CHECK(numerators.size() == denominators.size());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < numerators.size(); ++i) ratios.push_back(numerators[i] / denominators[i]);
  return spread_of(std::move(ratios));
}

Spread divided(double numerator, std::span<const double> denominators) {
  std::vector<double> ratios;
  for (const double denominator : denominators) ratios.push_back(numerator / denominator);
  return spread_of(std::move(ratios));
}

Status alternate(std::span<Timed> all, int rounds, const BenchProgress& progress, std::string_view what,
                 Stretch stretch) {
  const std::size_t steps = static_cast<std::size_t>(rounds + 1) * all.size();
  std::size_t done = 0;
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t k = 0; k < all.size(); ++k, ++done) {
      const double fraction = static_cast<double>(done) / static_cast<double>(steps);
      if (progress && !progress(stretch.from + fraction * (stretch.to - stretch.from), what))
        return fail("stopped");
      Timed& timed = all[(k + static_cast<std::size_t>(round + 1)) % all.size()];
      COPPICE_TRY_STATUS(timed.prepare());
      const double start = core::seconds();
      COPPICE_TRY_STATUS(timed.run());
      const double took = core::seconds() - start;
      if (round >= 0) timed.seconds.push_back(took);
    }
  }
  return {};
}

Limits::Limits(core::ThreadPool& pool, const core::Kernels& kernels)
    : pool_(pool),
      kernels_(kernels),
      int8_rounds_(long_enough(kernels.int8_peak)),
      f32_rounds_(long_enough(kernels.f32_peak)) {}

void Limits::read(std::span<const std::span<const std::byte>> parts) const {
  constexpr std::size_t kLine = 64;
  const auto threads = static_cast<std::size_t>(pool_.size());
  std::atomic<bool> any{false};
  pool_.run([&](int thread) {
    const auto mine = static_cast<std::size_t>(thread);
    float most = 0;
    for (const auto& part : parts) {
      const std::size_t lines = part.size() / kLine;
      const std::size_t begin = lines * mine / threads, end = lines * (mine + 1) / threads;
      most += kernels_.read_all(part.data() + begin * kLine, (end - begin) * kLine);
    }
    if (most != 0) any.store(true, std::memory_order_relaxed);  // what is read is wanted
  });
}

double Limits::work(Peak peak, std::int64_t rounds) const {
  double one = 0;
  pool_.run([&](int thread) {
    const double done = peak(rounds);
    if (thread == 0) one = done;
  });
  return one * pool_.size();
}

// Rounds that take about five milliseconds: clocks settle, and a measurement of many is still short.
std::int64_t Limits::long_enough(Peak peak) const {
  constexpr double kWanted = 5e-3;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (std::int64_t rounds = 1024; rounds < kMost; rounds *= 2) {
    const double start = core::seconds();
    work(peak, rounds);
    if (core::seconds() - start >= kWanted) return rounds;
  }
  return kMost;
}

Result<MachineSpeed> Limits::speed(int rounds, const BenchProgress& progress) const {
  double int8_work = 0, f32_work = 0;
  Timed timed[] = {{[&] {
                     int8_work = int8();
                     return Status();
                   }},
                   {[&] {
                     f32_work = f32();
                     return Status();
                   }}};
  COPPICE_TRY_STATUS(alternate(timed, rounds, progress, "this machine", {0, 0}));
  return MachineSpeed{std::string(kernels_.name), pool_.size(), divided(int8_work, timed[0].seconds),
                      divided(f32_work, timed[1].seconds)};
}

Status check_repeats(int repeats) {
  const int values[] = {repeats};
  return check_range("repeats", values, 1, 1000);
}

Status check_range(const char* field, std::span<const int> values, int least, int most) {
  if (values.empty()) return fail(fmt::format("{} = nothing: name at least one number", field));
  for (const int value : values)
    if (value < least || value > most)
      return fail(fmt::format("{} = {}: it must be from {} to {}", field, value, least, most));
  return {};
}

}  // namespace coppice
