// A progress bar on the terminal's stderr: label, bar, fraction, rate, time left. Where stderr is not a
// terminal it prints nothing at all, so that logs and pipes stay clean. One thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace coppice::core {

class Progress {
 public:
  // `total` > 0 in `unit`s: "bytes" (shown as MB/s, GB/s), "tokens", "prompts", ... or "" for no rate.
  Progress(std::string label, double total, std::string unit = "");
  ~Progress();  // wipes the line, so that what is printed next begins at the margin
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // So many units are done. Draws at most ten times a second; cheap enough to call for every token.
  void update(double done);

 private:
  std::string label_;
  double total_;
  std::string unit_;
  double start_;
  double drawn_at_ = 0;
  bool visible_;
  bool drawn_ = false;
};

// The line as it is drawn, without the carriage return; never wider than `columns`.
struct ProgressLine {
  std::string_view label;
  double done;
  double total;
  std::string_view unit;
  double elapsed;  // seconds
};
std::string format_progress(const ProgressLine& line, int columns);

}  // namespace coppice::core
