// A constant load: so many requests at once, a new one joins whenever one ends. The prompts are asked in
// order, and again from the first until each has been answered once, so that the load stays whole to the end.
#pragma once

#include <coppice/coppice.h>

#include <optional>
#include <span>
#include <vector>

#include "bench/row_costs.h"

namespace coppice::app {

struct LoadShape {
  std::span<const std::vector<Token>> prompts;
  Sampling sampling;  // prompt i is stream i
  int at_once = 1;
};

// Seconds on the loop's own clock, which runs in its turns alone.
struct Answered {
  Generation generation;
  double first_token = 0;  // from being asked
  double whole = 0;        // the same, to the last token
  // Behind the first token; 0 where that is all there is.
  double tokens_per_second() const;
};

class ClosedLoop {
 public:
  // The engine serves `at_once` requests and nobody else meanwhile. `costs` prices the rows of its passes.
  ClosedLoop(Engine& engine, const LoadShape& shape, const RowCosts& costs);
  ~ClosedLoop();  // cancels what is still asked

  // So many passes, or until every prompt has been answered. An error is a request that failed.
  Status turn(int passes);
  bool done() const { return left_ == 0; }

  // Of all requests, those asked again included.
  std::uint64_t tokens() const { return tokens_; }
  double seconds() const { return seconds_; }
  std::uint64_t passes() const { return passes_; }                   // that somebody drew in
  std::uint64_t rows() const { return rows_; }                       // of those, prompt rows left out
  double priced_seconds() const { return priced_; }                  // what such passes cost by the table
  const std::vector<Answered>& answers() const { return answers_; }  // [prompt], whole once done()

 private:
  struct Asked {
    std::uint64_t id = 0;
    std::size_t number = 0;  // counts on behind the last prompt
    double when = 0, first = -1, last = 0;
  };
  Status ask();
  Status pass();
  Status collect();
  bool hear(std::size_t number, const Event& event);
  double now() const;

  Engine& engine_;
  LoadShape shape_;
  const RowCosts& costs_;
  std::vector<Asked> asked_;
  std::vector<Answered> answers_;
  std::size_t next_ = 0, left_ = 0;
  std::uint64_t tokens_ = 0, passes_ = 0, rows_ = 0;
  std::uint64_t rows_of_pass_ = 0;
  double seconds_ = 0, began_ = 0, priced_ = 0;
};

}  // namespace coppice::app
