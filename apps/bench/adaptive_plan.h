// The list of what `coppice bench adaptive` measures, prompt by prompt and round by round.
#pragma once

#include <coppice/coppice.h>

#include <deque>
#include <list>
#include <string>
#include <vector>

#include "bench/adaptive_config.h"
#include "bench/adaptive_tasks.h"

namespace coppice::app {

struct AdaptiveWish {
  TaskFiles files;
  // tasks: the four of the paper; categories: all of Spec-Bench; lengths: long answers; ablations.
  std::vector<std::string> parts{"tasks", "categories", "lengths", "ablations"};
  std::vector<std::string> samplings{"greedy"};
  std::vector<std::string> methods;              // empty: all whose files and policies are there
  int prompts = 0, rounds = 1;                   // of each task and category; of the tasks and categories
  int length_prompts = 1, ablation_prompts = 4;  // of each category of conversations; of each task
  int texts = 1;                                 // of each task and category: painted
  int tokens = 128, length_tokens = 512;
};

struct AdaptiveWork {
  std::string group;  // "main", "lengths", "ablations"
  std::string sampling;
  const TaskPrompt* prompt = nullptr;
  const std::vector<Contender>* contenders = nullptr;  // plain first
  int round = 0, tokens = 0;
  bool painted = false;

  std::string key() const;
  double weight() const;  // what it takes, in answers
};

struct AdaptivePlan {
  std::list<std::vector<Contender>> lists;  // addresses stay, as those of the prompts
  std::deque<TaskPrompt> prompts;
  std::vector<AdaptiveWork> works;
  std::vector<std::pair<std::string, std::string>> left_out;  // method, and why
};

Result<AdaptivePlan> plan_adaptive(const AdaptiveWish& wish, const AdaptiveConfig& config, const Model& model,
                                   int context);

}  // namespace coppice::app
