#include <coppice/tools.h>

#include "api/impl.h"
#include "base/check.h"
#include "draft/ngram_corpus.h"

namespace coppice {

Result<NgramBuildReport> build_ngram(const Tokenizer& tokenizer, const NgramBuildOptions& options) {
  core::NgramCorpus corpus;
  corpus.inputs = options.inputs;
  corpus.output = options.output;
  corpus.order = options.order;
  corpus.min_count = options.min_count;
  corpus.max_continuations = options.max_continuations;
  corpus.progress = options.progress;
  COPPICE_TRY(core::NgramReport report, core::build_ngram(*tokenizer.impl().tokenizer, corpus));
  return NgramBuildReport{report.texts, report.tokens, report.bytes};
}

}  // namespace coppice
