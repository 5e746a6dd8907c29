// The work that `coppice bench adaptive` is measured on: GSM8K with five shots, HumanEval without, and
// Spec-Bench, whose summaries and conversations are the other two tasks of the paper.
#pragma once

#include <coppice/coppice.h>

#include <string>
#include <string_view>
#include <vector>

#include "bench/answers.h"

namespace coppice::app {

struct TaskFiles {
  std::string data, humaneval;  // a folder, a file
};

// Prompts of one kind, spread over it: set "gsm8k" or "humaneval", or a category of "spec-bench".
struct TaskList {
  std::string set, category;
  std::vector<TaskPrompt> prompts;
};

inline constexpr std::string_view kGsm8k = "gsm8k", kHumanEval = "humaneval", kSpecBench = "spec-bench";
bool is_chat(std::string_view category);     // MT-Bench-like: writing to humanities
bool is_summary(std::string_view category);  // CNN/DailyMail

// At most `limit` prompts of each kind (0: all); without `everything` of Spec-Bench the summaries and
// conversations alone. A file that is not there is named with where it comes from and its SHA-256.
Result<std::vector<TaskList>> read_tasks(const TaskFiles& files, const Model& model, int context, int limit,
                                         bool everything);

}  // namespace coppice::app
