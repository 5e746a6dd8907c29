#include "metrics.h"

#include <fmt/core.h>

#include <algorithm>

namespace coppice::serve {
namespace {

constexpr double kFirstToken[] = {.001, .0025, .005, .01, .02, .04, .08, .16, .32,
                                  .64,  1.25,  2.5,  5,   10,  20,  40,  80};
constexpr double kToken[] = {.0005, .001, .002, .003, .005, .0075, .01, .015, .02,
                             .03,   .05,  .075, .1,   .2,   .4,    .8,  1.6};
constexpr double kRequest[] = {.01, .03, .1, .2, .3, .5, .8, 1,   1.5, 2,
                               2.5, 5,   10, 15, 20, 30, 60, 120, 300, 600};

// What vLLM calls the end of a request.
std::string finished_reason(StopReason reason) {
  switch (reason) {
    case StopReason::end_of_text:
    case StopReason::stop_string:
      return "stop";
    case StopReason::max_tokens:
    case StopReason::context_full:
      return "length";
    case StopReason::cancelled:
      return "abort";
    case StopReason::timed_out:
      return "timeout";
    default:
      return "error";
  }
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

}  // namespace

const std::span<const double> kFirstTokenBounds = kFirstToken;
const std::span<const double> kTokenBounds = kToken;
const std::span<const double> kRequestBounds = kRequest;

void Histogram::observe(double value, std::uint64_t times) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<std::size_t>(bucket)].fetch_add(times, std::memory_order_relaxed);
  sum_.fetch_add(value * static_cast<double>(times), std::memory_order_relaxed);
}

Histogram::Reading Histogram::read() const {
  Reading out;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    out.count += counts_[i].load(std::memory_order_relaxed);
    if (i < bounds_.size()) out.upto.emplace_back(bounds_[i], out.count);
  }
  out.sum = sum_.load(std::memory_order_relaxed);
  return out;
}

void ModelMetrics::add(const Generation& generation) {
  const std::lock_guard<std::mutex> held(mutex_);
  stats_.add(generation.stats);
  ++ended_[finished_reason(generation.stop)];
}

std::pair<Stats, std::map<std::string, std::uint64_t>> ModelMetrics::read() const {
  const std::lock_guard<std::mutex> held(mutex_);
  return {stats_, ended_};
}

void HttpMetrics::add(std::string_view route, std::string_view method, int status, bool lost) {
  const std::string code = lost ? std::string("lost") : fmt::format("{}", status);
  const std::string labels =
      label("route", route) + "," + label("method", method) + "," + label("code", code);
  const std::lock_guard<std::mutex> held(mutex_);
  ++requests_[labels];
}

std::map<std::string, std::uint64_t> HttpMetrics::read() const {
  const std::lock_guard<std::mutex> held(mutex_);
  return requests_;
}

std::string label(std::string_view name, std::string_view value) {
  std::string escaped(value);
  replace_all(escaped, "\\", "\\\\");
  replace_all(escaped, "\"", "\\\"");
  replace_all(escaped, "\n", "\\n");
  return fmt::format("{}=\"{}\"", name, escaped);
}

void MetricsText::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::sample(std::string_view labels, double value) {
  if (labels.empty()) {
    text_ += fmt::format("{} {}\n", name_, value);
  } else {
    text_ += fmt::format("{}{{{}}} {}\n", name_, labels, value);
  }
}

void MetricsText::histogram(std::string_view labels, const Histogram& histogram) {
  const Histogram::Reading reading = histogram.read();
  const std::string_view comma = labels.empty() ? "" : ",";
  for (const auto& [bound, count] : reading.upto)
    text_ += fmt::format("{}_bucket{{{}{}le=\"{}\"}} {}\n", name_, labels, comma, bound, count);
  text_ += fmt::format("{}_bucket{{{}{}le=\"+Inf\"}} {}\n", name_, labels, comma, reading.count);
  text_ += fmt::format("{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name_, labels, reading.sum, name_, labels,
                       reading.count);
}

}  // namespace coppice::serve
