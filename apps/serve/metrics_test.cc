#include "metrics.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

namespace coppice::serve {
namespace {

Generation generation(StopReason stop) {
  Generation out;
  out.stop = stop;
  out.stats.tokens = 10;
  out.stats.cycles = 4;
  out.stats.plain_cycles = 1;
  out.stats.guesses = 9;
  out.stats.accepted = 6;
  out.stats.reached_at_depth = {3, 2};
  out.stats.accepted_at_depth = {3, 1};
  out.stats.sources = {{"lookup", 5, 4}, {"lookup", 4, 2}};
  return out;
}

std::string text_of(const ModelMetrics& metrics, const std::string& name = "m") {
  MetricsText text;
  const NamedMetrics models[] = {{name, &metrics}};
  write_models(text, models);
  return text.take();
}

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, SpeculationIsCountedUnderTheNamesOfVllm) {
  ModelMetrics metrics;
  metrics.add(generation(StopReason::max_tokens));
  metrics.add(generation(StopReason::end_of_text));
  const std::string text = text_of(metrics);
  const std::string m = "{engine=\"0\",model_name=\"m\"";
  EXPECT_TRUE(has_line(text, "vllm:spec_decode_num_drafts_total" + m + "} 6")) << text;
  EXPECT_TRUE(has_line(text, "vllm:spec_decode_num_draft_tokens_total" + m + "} 18"));
  EXPECT_TRUE(has_line(text, "vllm:spec_decode_num_accepted_tokens_total" + m + "} 12"));
  EXPECT_TRUE(
      has_line(text, "vllm:spec_decode_num_accepted_tokens_per_pos_total" + m + ",position=\"0\"} 6"));
  EXPECT_TRUE(
      has_line(text, "vllm:spec_decode_num_accepted_tokens_per_pos_total" + m + ",position=\"1\"} 2"));
  EXPECT_TRUE(has_line(text, "vllm:generation_tokens_total" + m + "} 20"));
  EXPECT_TRUE(has_line(text, "vllm:request_success_total" + m + ",finished_reason=\"length\"} 1"));
  EXPECT_TRUE(has_line(text, "coppice_source_guesses_total" + m + ",source=\"lookup\"} 18"))
      << "two of one name are one";
}

TEST(Metrics, BucketsHoldWhatIsAtMostTheirBound) {
  ModelMetrics metrics;
  metrics.first_token.observe(.001);
  metrics.first_token.observe(.0011);
  metrics.first_token.observe(1000, 2);
  const auto reading = metrics.first_token.read();
  EXPECT_EQ(reading.count, 4u);
  EXPECT_EQ(reading.upto[0], std::make_pair(.001, std::uint64_t{1}));
  EXPECT_EQ(reading.upto[1].second, 2u);
  EXPECT_EQ(reading.upto.back().second, 2u) << "the rest is above every bound";
  EXPECT_DOUBLE_EQ(reading.sum, 2000.0021);
}

TEST(Metrics, EveryLineIsOfTheTextFormatAndFamiliesStandTogether) {
  ModelMetrics metrics;
  metrics.add(generation(StopReason::cancelled));
  HttpMetrics http;
  http.add("/v1/models", "GET", 200, false);
  http.add("other", "GET", 0, true);
  MetricsText text;
  const NamedMetrics models[] = {{"a \"quoted\"\\name", &metrics}, {"b", &metrics}};
  write_models(text, models);
  write_http(text, http, 3);
  write_process(text);
  const std::regex sample(R"re([a-z0-9_:]+(\{([a-z_]+="([^"\\\n]|\\.)*",?)*\})? ([-+.0-9e]+|NaN))re");
  std::istringstream lines(text.take());
  std::string line, family;
  std::vector<std::string> seen;
  while (std::getline(lines, line)) {
    if (line.rfind("# HELP ", 0) == 0) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_EQ(std::count(seen.begin(), seen.end(), family), 0) << family << " twice";
      seen.push_back(family);
    } else if (line.rfind("# TYPE ", 0) != 0) {
      EXPECT_TRUE(std::regex_match(line, sample)) << line;
      EXPECT_EQ(line.rfind(family, 0), 0u) << line << " under " << family;
    }
  }
  EXPECT_GT(seen.size(), 30u);
}

}  // namespace
}  // namespace coppice::serve
