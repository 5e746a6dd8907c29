#include "base/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/os.h"

namespace coppice::core {
namespace {

constexpr int kStderr = 2;
constexpr double kSecondsBetween = 0.1;
constexpr int kBarCells = 24;

std::string rate_text(double rate, std::string_view unit) {
  if (unit != "bytes") return fmt::format("{:.{}f} {}/s", rate, rate < 10 ? 1 : 0, unit);
  if (rate >= 1e9) return fmt::format("{:.1f} GB/s", rate / 1e9);
  return fmt::format("{:.0f} MB/s", rate / 1e6);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(std::min(seconds, 359999.0)));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string format_progress(const ProgressLine& line, int columns) {
  const double fraction = std::clamp(line.done / line.total, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(fraction * kBarCells);
  const std::string bar = std::string(filled, '#') + std::string(kBarCells - filled, '.');
  std::string text = fmt::format("{} [{}] {:3.0f}%", line.label, bar, std::floor(fraction * 100));
  if (line.elapsed > 0 && line.done > 0) {
    const double rate = line.done / line.elapsed;
    if (!line.unit.empty()) text += "  " + rate_text(rate, line.unit);
    text += "  " + duration_text(std::max(0.0, line.total - line.done) / rate) + " left";
  }
  // The last column stays free: some terminals wrap when it is written.
  if (static_cast<int>(text.size()) >= columns)
    text.resize(static_cast<std::size_t>(std::max(columns - 1, 0)));
  return text;
}

Progress::Progress(std::string label, double total, std::string unit)
    : label_(std::move(label)),
      total_(total > 0 ? total : 1),
      unit_(std::move(unit)),
      start_(seconds()),
      visible_(is_terminal(kStderr)) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(double done) {
  if (!visible_) return;
  const double now = seconds();
  if (now - drawn_at_ < kSecondsBetween) return;
  drawn_at_ = now;
  drawn_ = true;
  const std::string text =
      format_progress({label_, done, total_, unit_, now - start_}, terminal_columns(kStderr));
  std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
  std::fflush(stderr);
}

}  // namespace coppice::core
