// The log of a training run: one CSV line a judgement, and a plot of it.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <string>
#include <vector>

namespace coppice::core::train {

struct LogLine {
  std::int64_t step = 0, tokens = 0;
  double seconds = 0, rate = 0, loss = 0;
  double top1 = 0, top4 = 0, top8 = 0, overlap = 0, accepted = 0;
  double tokens_per_second = 0, seconds_left = 0;
};

class Log {
 public:
  // `resume`: the lines that are there up to `step` stay; else the file begins anew.
  static Result<Log> open(std::string path, bool resume, std::int64_t step);

  // Rewrites the CSV file, and the plot beside it (.svg), whole.
  Status add(const LogLine& line);
  const std::vector<LogLine>& lines() const { return lines_; }

 private:
  std::string path_;
  std::vector<LogLine> lines_;
};

// Loss, agreement and accepted length against tokens, as SVG.
std::string plot(const std::vector<LogLine>& lines, const std::string& title);

}  // namespace coppice::core::train
