// Counters of the server, as Prometheus reads them. What vLLM counts too has vLLM's names, so that dashboards
// made for it show it; the rest begins with coppice_. docs/server.md lists them.
#pragma once

#include <coppice/coppice.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::serve {

// Values sorted into buckets. Any thread; no lock.
class Histogram {
 public:
  static constexpr std::size_t kBuckets = 20;
  // `bounds`: upper ends of the buckets, rising, at most kBuckets of them.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}
  void observe(double value, std::uint64_t times = 1);

  struct Reading {
    std::vector<std::pair<double, std::uint64_t>> upto;  // bound and how many are at most that
    std::uint64_t count = 0;
    double sum = 0;
  };
  Reading read() const;

 private:
  std::span<const double> bounds_;
  std::array<std::atomic<std::uint64_t>, kBuckets + 1> counts_{};
  std::atomic<double> sum_{0};
};

extern const std::span<const double> kFirstTokenBounds, kTokenBounds, kRequestBounds;  // seconds

// Of one model. The engine's thread writes, whoever is asked for /metrics reads.
struct ModelMetrics {
  std::atomic<std::int64_t> running{0}, waiting{0};
  std::atomic<std::int64_t> waiting_for_cache{0};  // of those waiting: there are places, but no room
  std::atomic<std::int64_t> positions{0};          // of the cache that requests in work fill
  std::atomic<std::int64_t> most_positions{0};     // there are
  std::atomic<std::int64_t> engines{0}, bytes{0};
  std::atomic<std::uint64_t> refused{0};  // because the queue was full
  std::atomic<std::uint64_t> loads{0}, unloads{0};
  std::atomic<double> engine_seconds{0};     // in the engines, without what readers were told there
  std::atomic<double> thread_seconds{0};     // that the engines' thread had requests in work
  Histogram first_token{kFirstTokenBounds};  // seconds from the request to its first token
  Histogram between_tokens{kTokenBounds};    // seconds a token, of those behind the first
  Histogram whole{kRequestBounds};           // seconds from the request to its last token
  Histogram queue{kRequestBounds};           // seconds before the first pass

  void add(const Generation& generation);                               // when a request has ended
  std::pair<Stats, std::map<std::string, std::uint64_t>> read() const;  // sums, and how requests ended

 private:
  mutable std::mutex mutex_;
  Stats stats_;                                 // guarded by mutex_
  std::map<std::string, std::uint64_t> ended_;  // guarded by mutex_; by the name of the reason
};

// Of the transport.
struct HttpMetrics {
  void add(std::string_view route, std::string_view method, int status, bool lost);
  std::atomic<std::uint64_t> bytes{0};
  std::map<std::string, std::uint64_t> read() const;  // labels, as text -> how many

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> requests_;  // guarded by mutex_
};

// Writes the text format 0.0.4. Samples of one name must follow each other.
class MetricsText {
 public:
  // `type`: "counter", "gauge", "histogram". Of a counter the name must end in _total.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::string_view labels, double value);  // labels: "a=\"b\",c=\"d\"" or ""
  void histogram(std::string_view labels, const Histogram& histogram);
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

std::string label(std::string_view name, std::string_view value);  // name="value", escaped

struct NamedMetrics {
  std::string model;
  const ModelMetrics* metrics = nullptr;
};
void write_models(MetricsText& text, std::span<const NamedMetrics> models);
void write_http(MetricsText& text, const HttpMetrics& http, int connections);
void write_process(MetricsText& text);  // memory, open files, start

}  // namespace coppice::serve
