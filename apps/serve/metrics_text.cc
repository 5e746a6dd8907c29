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

template <class Value>
struct Row {
  const char* name;
  const char* help;
  Value value;
};

std::uint64_t drafts(const Stats& stats) { return stats.cycles - stats.plain_cycles; }

constexpr Row<double (*)(const Stats&)> kCounters[] = {
    {"vllm:prompt_tokens_total", "Tokens of prompts.",
     [](const Stats& s) { return double(s.prompt_tokens); }},
    {"vllm:generation_tokens_total", "Tokens drawn.", [](const Stats& s) { return double(s.tokens); }},
    {"vllm:prefix_cache_queries_total", "Tokens of prompts that were looked for in the cache.",
     [](const Stats& s) { return double(s.prompt_tokens); }},
    {"vllm:prefix_cache_hits_total", "Of those, found there.",
     [](const Stats& s) { return double(s.reused_tokens); }},
    {"vllm:spec_decode_num_drafts_total", "Passes with guesses, counted for each request in them.",
     [](const Stats& s) { return double(drafts(s)); }},
    {"vllm:spec_decode_num_draft_tokens_total", "Guesses verified.",
     [](const Stats& s) { return double(s.guesses); }},
    {"vllm:spec_decode_num_accepted_tokens_total", "Of those, taken.",
     [](const Stats& s) { return double(s.accepted); }},
    {"coppice_passes_total", "Passes of the target that drew tokens; one that requests share counts once.",
     [](const Stats& s) { return double(s.target_passes); }},
    {"coppice_cycles_total", "The same, counted for each request in a pass.",
     [](const Stats& s) { return double(s.cycles); }},
    {"coppice_draft_passes_total", "Passes of draft models.",
     [](const Stats& s) { return double(s.draft_passes); }},
    {"coppice_guesses_wanted_total", "Guesses made before the policy left out what does not pay.",
     [](const Stats& s) { return double(s.wanted); }},
    {"coppice_target_bytes_total", "Weights and cache read while decoding.",
     [](const Stats& s) { return double(s.target_bytes); }},
    {"coppice_draft_bytes_total", "The same, by draft models.",
     [](const Stats& s) { return double(s.draft_bytes); }},
};

constexpr Row<double Stats::*> kStages[] = {
    {"prefill", "", &Stats::prefill_seconds}, {"draft", "", &Stats::draft_seconds},
    {"verify", "", &Stats::verify_seconds},   {"sample", "", &Stats::sample_seconds},
    {"policy", "", &Stats::policy_seconds},   {"decode", "", &Stats::decode_seconds},
};

constexpr Row<std::atomic<std::int64_t> ModelMetrics::*> kGauges[] = {
    {"vllm:num_requests_running", "Requests in work.", &ModelMetrics::running},
    {"vllm:num_requests_waiting", "Requests that wait for a place.", &ModelMetrics::waiting},
    {"coppice_kv_positions_used", "Positions of the cache that requests in work fill.",
     &ModelMetrics::positions},
    {"coppice_kv_positions", "Positions there are, in all engines of the model.",
     &ModelMetrics::most_positions},
    {"coppice_engines", "Engines of the model: one for each mix of drafters and policy in use.",
     &ModelMetrics::engines},
    {"coppice_model_bytes", "Memory of weights, caches and working space; 0: not loaded.",
     &ModelMetrics::bytes},
};

constexpr Row<Histogram ModelMetrics::*> kHistograms[] = {
    {"vllm:time_to_first_token_seconds", "From a request to its first token.", &ModelMetrics::first_token},
    {"vllm:inter_token_latency_seconds", "Seconds a token, of those behind the first.",
     &ModelMetrics::between_tokens},
    {"vllm:e2e_request_latency_seconds", "From a request to its last token.", &ModelMetrics::whole},
    {"vllm:request_queue_time_seconds", "From a request to its first pass.", &ModelMetrics::queue},
};

constexpr Row<std::atomic<std::uint64_t> ModelMetrics::*> kEvents[] = {
    {"coppice_requests_refused_total", "Requests refused because the queue was full.",
     &ModelMetrics::refused},
    {"coppice_model_loads_total", "How often the model was loaded.", &ModelMetrics::loads},
    {"coppice_model_unloads_total", "How often it was unloaded to make room.", &ModelMetrics::unloads},
};

void write_speculation(MetricsText& text, const std::vector<Reading>& models) {
  text.family("vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter",
              "Guesses taken, by how far ahead they reached.");
  for (const Reading& model : models) {
    std::size_t depths = Stats::kDepths;
    while (depths > 0 && model.stats.reached_at_depth[depths - 1] == 0) --depths;
    for (std::size_t d = 0; d < depths; ++d)
      text.sample(fmt::format("{},position=\"{}\"", model.labels, d),
                  static_cast<double>(model.stats.accepted_at_depth[d]));
  }
  const auto by_source = [&](const char* name, const char* help, std::uint64_t SourceStats::*value) {
    text.family(name, "counter", help);
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
  for (const auto& row : kGauges) {
    text.family(row.name, "gauge", row.help);
    for (const Reading& model : models)
      text.sample(model.labels, static_cast<double>((model.live->*row.value).load()));
  }
  text.family("vllm:kv_cache_usage_perc", "gauge",
              "Share of the cache that requests in work fill; 1 is all of it.");
  for (const Reading& model : models) {
    const auto most = static_cast<double>(model.live->most_positions.load());
    text.sample(model.labels, most > 0 ? static_cast<double>(model.live->positions.load()) / most : 0);
  }
  for (const auto& row : kCounters) {
    text.family(row.name, "counter", row.help);
    for (const Reading& model : models) text.sample(model.labels, row.value(model.stats));
  }
  text.family("vllm:request_success_total", "counter", "Requests that ended, by how.");
  for (const Reading& model : models)
    for (const auto& [reason, count] : model.ended)
      text.sample(model.labels + "," + label("finished_reason", reason), static_cast<double>(count));
  write_speculation(text, models);
  text.family("coppice_stage_seconds_total", "counter",
              "Seconds that requests waited, by stage; decode holds all but prefill.");
  for (const Reading& model : models)
    for (const auto& stage : kStages)
      text.sample(model.labels + "," + label("stage", stage.name), model.stats.*stage.value);
  for (const auto& row : kEvents) {
    text.family(row.name, "counter", row.help);
    for (const Reading& model : models)
      text.sample(model.labels, static_cast<double>((model.live->*row.value).load()));
  }
  for (const auto& row : kHistograms) {
    text.family(row.name, "histogram", row.help);
    for (const Reading& model : models) text.histogram(model.labels, model.live->*row.value);
  }
}

void write_http(MetricsText& text, const HttpMetrics& http, int connections) {
  text.family("coppice_http_connections", "gauge", "Open connections.");
  text.sample("", connections);
  text.family("coppice_http_answer_bytes_total", "counter", "Bytes of answers.");
  text.sample("", static_cast<double>(http.bytes.load()));
  text.family("coppice_http_requests_total", "counter",
              "Requests by route, method and status; lost: the client went away.");
  for (const auto& [labels, count] : http.read()) text.sample(labels, static_cast<double>(count));
}

void write_process(MetricsText& text) {
  text.family("process_resident_memory_bytes", "gauge", "Memory in use.");
  text.sample("", status_bytes("VmRSS:"));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  text.family("process_cpu_seconds_total", "counter", "Processor time.");
  text.sample("", seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

}  // namespace coppice::serve
