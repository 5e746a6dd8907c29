// What commands that let a model write a corpus share.
#pragma once

#include <coppice/corpus.h>

#include <string>
#include <vector>

namespace coppice::app {

// "0:0.5,0.8:0.25": TEMPERATURE:SHARE,...; no share: 1.
Result<std::vector<CorpusTemperature>> parse_temperatures(const std::string& text);

std::string duration(double seconds);  // "2 h 05 min"

// For CorpusOptions::progress: a bar on a terminal, else a line now and then. False after Ctrl-C.
class CorpusReporter {
 public:
  bool operator()(const CorpusProgress& progress);

 private:
  double said_ = 0;
};

}  // namespace coppice::app
