// Makes texts in large batches: a pass carries the next token of every text in the making and, as far as
// there is room, the prompts of those that begin. Draws and log-probabilities are spread over the threads.
#pragma once

#include <coppice/corpus.h>
#include <coppice/error.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "api/corpus_jobs.h"
#include "base/thread_pool.h"
#include "corpus/corpus_file.h"
#include "model/model.h"
#include "sample/sampler.h"

namespace coppice {

class CorpusRunner {
 public:
  // `longest`: tokens of the longest known part among the jobs to come.
  static Result<std::unique_ptr<CorpusRunner>> make(const Model& model, const CorpusOptions& options,
                                                    const core::CorpusShape& shape, int longest);

  struct Hooks {
    std::function<bool()> more;                            // may another text begin?
    std::function<Status(core::CorpusRecord&&)> finished;  // one is done
    std::function<bool()> go_on;                           // after every pass; false: leave at once
  };
  // In the order of `jobs`, as far as more() says so. Texts in the making are lost when go_on() says false.
  Status run(std::span<const CorpusJob> jobs, const Hooks& hooks);

  std::uint64_t tokens_in_the_making() const;  // generated ones

 private:
  struct Slot {
    const CorpusJob* job = nullptr;  // null: free
    int sequence = -1;
    core::CorpusRecord record;
    core::Sampler sampler;
    int limit = 0;             // its ids may grow to this many
    bool instruction = false;  // the model is still writing it
    bool done = false;         // nothing more is drawn
    int first_row = 0, row_count = 0;
    Token drawn = kNoToken;
  };
  struct Draw {
    Slot* slot;
    int row;              // of the pass
    int position;         // of the token that is drawn, or known already
    bool failed = false;  // no token could be drawn
  };

  CorpusRunner(const Model& model, const CorpusOptions& options, const core::CorpusShape& shape);
  Result<core::Sampler> sampler(float temperature, int top_k, std::uint64_t seed) const;
  Status prepare_prefix();
  Status begin(Slot& slot, const CorpusJob& job, bool& room);
  int pending(const Slot& slot) const;
  void add_rows(Slot& slot, int most);
  void collect();
  void draw_all();
  void draw(Draw& what, core::Sampler::Scratch& scratch);
  void take(Slot& slot);
  void append(Slot& slot, Token token);
  void end_instruction(Slot& slot, Token token);
  bool wants_logits(const Slot& slot, int position) const;

  const Model& model_;
  const CorpusOptions& options_;
  core::CorpusShape shape_;
  core::ThreadPool& pool_;
  std::unique_ptr<core::Context> context_;
  core::Sampler teacher_;  // says what the target thinks of tokens that are there
  std::vector<Token> before_answer_;
  std::vector<Token> prefix_;  // what conversations begin with, kept in the cache
  int prefix_sequence_ = -1;
  std::vector<Slot> slots_;
  std::vector<core::Row> rows_;
  std::vector<Draw> draws_;
  std::vector<core::Sampler::Scratch> scratches_;  // one a thread
};

}  // namespace coppice
