// A corpus of a size that is asked for: its prompts come again, or more texts from nothing, until it is
// there.
#include <coppice/fit.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "corpus/corpus_folder.h"

namespace coppice {
namespace {

constexpr std::uint64_t kShortText = 64;  // tokens: a first guess of how many texts are needed

// Rounds of the prompts, or texts from nothing, that an earlier run came to.
Result<std::uint64_t> begun(const CorpusOptions& options) {
  if (!core::is_corpus_folder(options.folder)) return std::uint64_t{0};
  COPPICE_TRY(const auto description, core::read_corpus_description(options.folder));
  const auto number = [&](const char* key) {
    const auto found = description.settings.find(key);
    const bool there = found != description.settings.end() && found->is_number_unsigned();
    return there ? found->get<std::uint64_t>() : 0;
  };
  return options.prompts.empty() ? number("self") : number("prompt_files") / options.prompts.size();
}

}  // namespace

Result<CorpusReport> fill_corpus(const Model& model, const CorpusOptions& options) {
  if (options.tokens == 0) return fail("tokens = 0: say how many there should be");
  if (!options.score.empty()) return fail("score: texts that are there already cannot fill a corpus");
  CorpusOptions round = options;
  CorpusProgress before;  // of the rounds that are over
  const auto in_all = [&before](CorpusProgress progress) {
    progress.all_texts = 0;
    progress.seconds += before.seconds;
    progress.run_texts += before.run_texts;
    progress.run_tokens += before.run_tokens;
    return progress;
  };
  if (options.progress)
    round.progress = [&](const CorpusProgress& progress) { return options.progress(in_all(progress)); };
  COPPICE_TRY(const std::uint64_t earlier, begun(options));
  std::uint64_t count = std::max(earlier, options.prompts.empty() ? options.tokens / kShortText + 1 : 1);
  while (true) {
    round.self = options.prompts.empty() ? count : 0;
    round.prompts.clear();
    for (std::uint64_t i = 0; i < count && !options.prompts.empty(); ++i)
      round.prompts.insert(round.prompts.end(), options.prompts.begin(), options.prompts.end());
    COPPICE_TRY(CorpusReport report, make_corpus(model, round));
    const std::uint64_t there = report.progress.tokens;
    report.progress = before = in_all(report.progress);
    if (report.stopped || there >= options.tokens) return report;
    if (there == 0) return fail(report.first_left_out + ": no prompt leaves room for an answer");
    const double wanted = static_cast<double>(options.tokens) / static_cast<double>(there);
    count += static_cast<std::uint64_t>(std::ceil(static_cast<double>(count) * (wanted - 1)));
  }
}

}  // namespace coppice
