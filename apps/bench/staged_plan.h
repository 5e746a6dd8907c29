// The list of what `coppice bench staged` measures, prompt by prompt.
#pragma once

#include <coppice/coppice.h>

#include <list>
#include <string>
#include <vector>

#include "bench/answers.h"
#include "bench/staged_config.h"

namespace coppice::app {

struct StagedWish {
  std::string humaneval, data;                    // a file, and a folder with spec_bench_dev.jsonl
  std::vector<std::string> forms{"chat", "raw"};  // of HumanEval
  std::vector<std::string> samplings{"greedy", "top-k"};
  std::vector<std::string> parts{"main", "trees"};  // and "sweeps"
  std::vector<std::string> modes;                   // of part main; empty: all whose files are there
  std::string instruction = "Complete the following Python function:\n```python\n{}\n```";
  int prompts = 0, sweep_prompts = 12, rounds = 1, texts = 3;
};

struct StagedWork {
  std::string group;  // "main", "trees", "sweep nodes", ...
  std::string sampling;
  TaskPrompt prompt;
  const std::vector<Contender>* contenders = nullptr;  // plain first
  int rounds = 1;
  bool painted = false;

  std::string key() const;
  double weight() const;  // what it takes, in answers
};

struct StagedPlan {
  std::list<std::vector<Contender>> lists;  // addresses stay
  std::vector<StagedWork> works;
  std::vector<std::pair<std::string, std::string>> left_out;  // mode, and the file that is not there
};

Result<StagedPlan> plan_staged(const StagedWish& wish, const StagedConfig& config, const Model& model,
                               int context);

}  // namespace coppice::app
