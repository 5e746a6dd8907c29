// Which counters there are, and what they are called.
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "metrics.h"

namespace coppice::serve {
namespace {

// One model's numbers, read once so that they belong together.
struct Reading {
  std::string labels;
  const ModelMetrics* live = nullptr;
  Stats stats;
  std::map<std::string, std::uint64_t> ended;
};

// A sample for each model and nothing more.
struct Simple {
  const char* name;
  const char* type;
  const char* help;
  double (*value)(const Reading&);
};

constexpr const char* kGauge = "gauge";
constexpr const char* kCounter = "counter";

template <auto Field>
double live(const Reading& model) {
  return static_cast<double>((model.live->*Field).load());
}

template <auto Field>
double sum(const Reading& model) {
  return static_cast<double>(model.stats.*Field);
}

double cache_used(const Reading& model) {
  const auto most = static_cast<double>(model.live->most_positions.load());
  return most > 0 ? static_cast<double>(model.live->positions.load()) / most : 0;
}

double drafts(const Reading& model) {
  return static_cast<double>(model.stats.cycles - model.stats.plain_cycles);
}

using Live = ModelMetrics;

constexpr Simple kSimple[] = {
    {"vllm:num_requests_running", kGauge, "Requests in work.", live<&Live::running>},
    {"vllm:num_requests_waiting", kGauge, "Requests that wait for a place.", live<&Live::waiting>},
    {"coppice_requests_waiting_for_cache", kGauge, "Of those, requests for whom the cache has no room.",
     live<&Live::waiting_for_cache>},
    {"coppice_kv_positions_used", kGauge, "Positions of the cache that requests in work fill.",
     live<&Live::positions>},
    {"coppice_kv_positions", kGauge, "Positions there are, in all engines of the model.",
     live<&Live::most_positions>},
    {"coppice_engines", kGauge, "Engines of the model: one for each mix of drafters and policy in use.",
     live<&Live::engines>},
    {"coppice_model_bytes", kGauge, "Memory of weights, caches and working space; 0: not loaded.",
     live<&Live::bytes>},
    {"vllm:kv_cache_usage_perc", kGauge, "Share of the cache that requests in work fill; 1 is all of it.",
     cache_used},
    {"vllm:prompt_tokens_total", kCounter, "Tokens of prompts.", sum<&Stats::prompt_tokens>},
    {"vllm:generation_tokens_total", kCounter, "Tokens drawn.", sum<&Stats::tokens>},
    {"vllm:prefix_cache_queries_total", kCounter, "Tokens of prompts that were looked for in the cache.",
     sum<&Stats::prompt_tokens>},
    {"vllm:prefix_cache_hits_total", kCounter, "Of those, found there.", sum<&Stats::reused_tokens>},
    {"vllm:spec_decode_num_drafts_total", kCounter, "Passes with guesses, counted for each request in them.",
     drafts},
    {"vllm:spec_decode_num_draft_tokens_total", kCounter, "Guesses verified.", sum<&Stats::guesses>},
    {"vllm:spec_decode_num_accepted_tokens_total", kCounter, "Of those, taken.", sum<&Stats::accepted>},
    {"coppice_passes_total", kCounter,
     "Passes of the target that drew tokens; one that requests share counts once.",
     sum<&Stats::target_passes>},
    {"coppice_cycles_total", kCounter, "The same, counted for each request in a pass.", sum<&Stats::cycles>},
    {"coppice_draft_passes_total", kCounter, "Passes of draft models.", sum<&Stats::draft_passes>},
    {"coppice_guesses_wanted_total", kCounter, "Guesses made before the policy left out what does not pay.",
     sum<&Stats::wanted>},
    {"coppice_target_bytes_total", kCounter, "Weights and cache read while decoding.",
     sum<&Stats::target_bytes>},
    {"coppice_draft_bytes_total", kCounter, "The same, by draft models.", sum<&Stats::draft_bytes>},
    {"coppice_engine_seconds_total", kCounter,
     "Seconds that the engines worked, without what readers were told on the way.",
     live<&Live::engine_seconds>},
    {"coppice_engine_thread_seconds_total", kCounter,
     "Seconds that their thread had requests in work: the same, and all the server does between passes.",
     live<&Live::thread_seconds>},
    {"coppice_requests_refused_total", kCounter, "Requests refused because the queue was full.",
     live<&Live::refused>},
    {"coppice_model_loads_total", kCounter, "How often the model was loaded.", live<&Live::loads>},
    {"coppice_model_unloads_total", kCounter, "How often it was unloaded to make room.",
     live<&Live::unloads>},
};

constexpr std::pair<const char*, double Stats::*> kStages[] = {
    {"prefill", &Stats::prefill_seconds}, {"draft", &Stats::draft_seconds},
    {"verify", &Stats::verify_seconds},   {"sample", &Stats::sample_seconds},
    {"policy", &Stats::policy_seconds},   {"decode", &Stats::decode_seconds},
};

struct Spread {
  const char* name;
  const char* help;
  Histogram ModelMetrics::*histogram;
};

constexpr Spread kSpreads[] = {
    {"vllm:time_to_first_token_seconds", "From a request to its first token.", &ModelMetrics::first_token},
    {"vllm:inter_token_latency_seconds", "Seconds a token, of those behind the first.",
     &ModelMetrics::between_tokens},
    {"vllm:e2e_request_latency_seconds", "From a request to its last token.", &ModelMetrics::whole},
    {"vllm:request_queue_time_seconds", "From a request to its first pass.", &ModelMetrics::queue},
};

void write_speculation(MetricsText& text, const std::vector<Reading>& models) {
  text.family("vllm:spec_decode_num_accepted_tokens_per_pos_total", kCounter,
              "Guesses taken, by how far ahead they reached.");
  for (const Reading& model : models) {
    std::size_t depths = Stats::kDepths;
    while (depths > 0 && model.stats.reached_at_depth[depths - 1] == 0) --depths;
    for (std::size_t d = 0; d < depths; ++d)
      text.sample(fmt::format("{},position=\"{}\"", model.labels, d),
                  static_cast<double>(model.stats.accepted_at_depth[d]));
  }
  const auto by_source = [&](const char* name, const char* help, std::uint64_t SourceStats::*value) {
    text.family(name, kCounter, help);
    for (const Reading& model : models) {
      std::map<std::string, std::uint64_t> sums;  // a mix may have several of one name
      for (const SourceStats& source : model.stats.sources) sums[source.name] += source.*value;
      for (const auto& [source, sum] : sums)
        text.sample(model.labels + "," + label("source", source), static_cast<double>(sum));
    }
  };
  by_source("coppice_source_guesses_total", "Guesses verified, by the drafter that made or shared them.",
            &SourceStats::proposed);
  by_source("coppice_source_accepted_total", "Of those, taken.", &SourceStats::accepted);
}

// kB of a line like "VmRSS:   1234 kB".
double status_bytes(const char* key) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen("/proc/self/status", "r"));
  char line[256];
  const std::size_t length = std::strlen(key);
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned long long kilobytes = 0;
    if (std::strncmp(line, key, length) == 0 && std::sscanf(line + length, " %llu", &kilobytes) == 1)
      return static_cast<double>(kilobytes) * 1024;
  }
  return 0;
}

}  // namespace

void write_models(MetricsText& text, std::span<const NamedMetrics> named) {
  std::vector<Reading> models;
  for (const NamedMetrics& one : named) {
    auto [stats, ended] = one.metrics->read();
    models.push_back(
        {"engine=\"0\"," + label("model_name", one.model), one.metrics, std::move(stats), std::move(ended)});
  }
  for (const Simple& row : kSimple) {
    text.family(row.name, row.type, row.help);
    for (const Reading& model : models) text.sample(model.labels, row.value(model));
  }
  text.family("vllm:request_success_total", kCounter, "Requests that ended, by how.");
  for (const Reading& model : models)
    for (const auto& [reason, count] : model.ended)
      text.sample(model.labels + "," + label("finished_reason", reason), static_cast<double>(count));
  write_speculation(text, models);
  text.family("coppice_stage_seconds_total", kCounter,
              "Seconds that requests waited, by stage; decode holds all but prefill.");
  for (const Reading& model : models)
    for (const auto& [stage, seconds] : kStages)
      text.sample(model.labels + "," + label("stage", stage), model.stats.*seconds);
  for (const Spread& row : kSpreads) {
    text.family(row.name, "histogram", row.help);
    for (const Reading& model : models) text.histogram(model.labels, model.live->*row.histogram);
  }
}

void write_http(MetricsText& text, const HttpMetrics& http, int connections) {
  text.family("coppice_http_connections", kGauge, "Open connections.");
  text.sample("", connections);
  text.family("coppice_http_answer_bytes_total", kCounter, "Bytes of answers.");
  text.sample("", static_cast<double>(http.bytes.load()));
  text.family("coppice_http_requests_total", kCounter,
              "Requests by route, method and status; lost: the client went away.");
  for (const auto& [labels, count] : http.read()) text.sample(labels, static_cast<double>(count));
}

void write_process(MetricsText& text) {
  text.family("process_resident_memory_bytes", kGauge, "Memory in use.");
  text.sample("", status_bytes("VmRSS:"));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  text.family("process_cpu_seconds_total", kCounter, "Processor time.");
  text.sample("", seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

}  // namespace coppice::serve
