#include "corpus_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "terminal.h"

namespace coppice::app {
namespace {

constexpr double kSecondsBetweenLines = 30;  // of progress, where there is no terminal to draw a bar on

std::string progress_text(const CorpusProgress& progress) {
  return fmt::format("{}{} texts, {} tokens{}, {:.0f} tok/s, {} left", progress.texts,
                     progress.all_texts > 0 ? fmt::format(" of {}", progress.all_texts) : std::string(),
                     progress.tokens,
                     progress.all_tokens > 0 ? fmt::format(" of {}", progress.all_tokens) : std::string(),
                     progress.tokens_per_second(), duration(progress.seconds_left()));
}

}  // namespace

Result<std::vector<CorpusTemperature>> parse_temperatures(const std::string& text) {
  std::vector<CorpusTemperature> out;
  const char* at = text.c_str();
  while (true) {
    char* end = nullptr;
    CorpusTemperature choice;
    choice.temperature = std::strtof(at, &end);
    bool good = end != at;
    if (good && *end == ':') {
      at = end + 1;
      choice.share = std::strtof(at, &end);
      good = end != at;
    }
    if (!good || (*end != 0 && *end != ','))
      return fail(
          fmt::format("--temperatures {}: TEMPERATURE:SHARE,... is wanted, as 0:0.5,0.8:0.25,1:0.25", text));
    out.push_back(choice);
    if (*end == 0) return out;
    at = end + 1;
  }
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

bool CorpusReporter::operator()(const CorpusProgress& progress) {
  const double fraction =
      progress.all_tokens > 0
          ? static_cast<double>(progress.tokens) / static_cast<double>(progress.all_tokens)
          : static_cast<double>(progress.texts) / std::max(1.0, static_cast<double>(progress.all_texts));
  show_progress("corpus", std::min(fraction, 0.999), progress_text(progress));
  if (!stderr_is_terminal() && progress.seconds - said_ >= kSecondsBetweenLines) {
    said_ = progress.seconds;
    note("{}, {} shards\n", progress_text(progress), progress.shards);
  }
  return !interrupted();
}

}  // namespace coppice::app
