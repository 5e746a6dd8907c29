#include "bench/adaptive_tasks.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "bench/prompts.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kShots = 5;
constexpr std::string_view kChat[] = {"writing", "roleplay",   "reasoning", "math",
                                      "coding",  "extraction", "stem",      "humanities"};

// Where a file comes from: the product ships none of them.
struct Origin {
  std::string_view name, from, sha256;
};
constexpr Origin kShotsFile{"gsm8k_train.jsonl",
                            "grade_school_math/data/train.jsonl of github.com/openai/grade-school-math",
                            "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465"};
constexpr Origin kQuestionsFile{
    "gsm8k_test_dev.jsonl",
    "the first 500 lines of grade_school_math/data/test.jsonl of github.com/openai/grade-school-math",
    "903eb73dc2c39a66780e18fe324d8528df3cd262dc5ea79aab090958ae1a74c2"};
constexpr Origin kSpecBenchFile{"spec_bench_dev.jsonl",
                                "every other question of each category of data/spec_bench/question.jsonl of "
                                "github.com/hemingkx/Spec-Bench",
                                "e4a34dc3bddfb08d5caa617ad47615fe65c64316b0678d5dbcbb611af84b1b32"};
constexpr Origin kHumanEvalFile{"HumanEval.jsonl",
                                "data/HumanEval.jsonl.gz of github.com/openai/human-eval, unpacked "
                                "(scripts/fetch_humaneval.sh)",
                                "1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2"};

Status there(const std::string& path, const Origin& origin) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return {};
  return fail(fmt::format("there is no file {}; {} is {}, SHA-256 {}", path, origin.name, origin.from,
                          origin.sha256));
}

Result<std::vector<JsonLine>> read_data(const std::string& path, const Origin& origin) {
  if (Status found = there(path, origin); !found) return tl::unexpected(found.error());
  return read_json_lines(path);
}

class Reader {
 public:
  Reader(const Model& model, int context, int limit) : model_(model), context_(context), limit_(limit) {}

  // "Question: ...\nAnswer: ..." five times, and the question. The answer ends where the next one would
  // begin.
  Result<TaskList> gsm8k(const std::string& folder) {
    auto shots = shots_of(folder + "/" + std::string(kShotsFile.name));
    if (!shots) return tl::unexpected(shots.error());
    const std::string path = folder + "/" + std::string(kQuestionsFile.name);
    if (Status found = there(path, kQuestionsFile); !found) return tl::unexpected(found.error());
    auto questions = read_prompts(path, limit_);
    if (!questions) return tl::unexpected(questions.error());
    TaskList list{std::string(kGsm8k), "", {}};
    for (NamedPrompt& question : *questions) {
      question.text = *shots + "Question: " + question.text + "\nAnswer:";
      if (Status added = add(list, question, "raw"); !added) return tl::unexpected(added.error());
      list.prompts.back().stop = "Question:";
    }
    return list;
  }

  Result<TaskList> humaneval(const std::string& path) {
    if (Status found = there(path, kHumanEvalFile); !found) return tl::unexpected(found.error());
    auto prompts = read_prompts(path, limit_);
    if (!prompts) return tl::unexpected(prompts.error());
    TaskList list{std::string(kHumanEval), "", {}};
    for (const NamedPrompt& prompt : *prompts) {
      if (Status added = add(list, prompt, "raw"); !added) return tl::unexpected(added.error());
    }
    return list;
  }

  // A list for each category, in the file's order; the first turn of each question.
  Result<std::vector<TaskList>> spec_bench(const std::string& folder, bool everything) {
    const std::string path = folder + "/" + std::string(kSpecBenchFile.name);
    if (Status found = there(path, kSpecBenchFile); !found) return tl::unexpected(found.error());
    auto prompts = read_prompts(path, 0);
    if (!prompts) return tl::unexpected(prompts.error());
    std::vector<std::pair<std::string, std::vector<NamedPrompt>>> sorted;
    for (NamedPrompt& prompt : *prompts) {
      if (!everything && !is_chat(prompt.category) && !is_summary(prompt.category)) continue;
      auto at = std::find_if(sorted.begin(), sorted.end(),
                             [&](const auto& entry) { return entry.first == prompt.category; });
      if (at == sorted.end()) at = sorted.insert(at, {prompt.category, {}});
      at->second.push_back(std::move(prompt));
    }
    std::vector<TaskList> lists;
    for (const auto& [category, all] : sorted) {
      TaskList list{std::string(kSpecBench), category, {}};
      for (const NamedPrompt& prompt : spread(all, limit_)) {
        if (Status added = add(list, prompt, "chat"); !added) return tl::unexpected(added.error());
      }
      lists.push_back(std::move(list));
    }
    return lists;
  }

 private:
  Result<std::string> shots_of(const std::string& path) {
    auto lines = read_data(path, kShotsFile);
    if (!lines) return tl::unexpected(lines.error());
    if (lines->size() < kShots)
      return fail(fmt::format("{} has {} lines; the first {} are the shots", path, lines->size(), kShots));
    std::string text;
    for (std::size_t i = 0; i < kShots; ++i) {
      const auto& [number, json] = (*lines)[i];
      for (const char* key : {"question", "answer"}) {
        if (!json.contains(key) || !json[key].is_string())
          return fail(fmt::format("{} line {}: \"{}\" is wanted", path, number, key));
      }
      text += "Question: " + json["question"].get<std::string>() +
              "\nAnswer: " + json["answer"].get<std::string>() + "\n\n";
    }
    return text;
  }

  Status add(TaskList& list, const NamedPrompt& prompt, const std::string& form) {
    auto made = task_prompt(model_, {list.set, form, prompt.name, prompt.text}, context_);
    if (!made) return tl::unexpected(made.error());
    made->category = list.category;
    list.prompts.push_back(std::move(*made));
    return {};
  }

  const Model& model_;
  int context_, limit_;
};

}  // namespace

bool is_chat(std::string_view category) {
  return std::find(std::begin(kChat), std::end(kChat), category) != std::end(kChat);
}

bool is_summary(std::string_view category) { return category == "summarization"; }

Result<std::vector<TaskList>> read_tasks(const TaskFiles& files, const Model& model, int context, int limit,
                                         bool everything) {
  Reader reader(model, context, limit);
  auto gsm8k = reader.gsm8k(files.data);
  if (!gsm8k) return tl::unexpected(gsm8k.error());
  auto humaneval = reader.humaneval(files.humaneval);
  if (!humaneval) return tl::unexpected(humaneval.error());
  auto spec_bench = reader.spec_bench(files.data, everything);
  if (!spec_bench) return tl::unexpected(spec_bench.error());
  std::vector<TaskList> lists{std::move(*gsm8k), std::move(*humaneval)};
  for (TaskList& list : *spec_bench) lists.push_back(std::move(list));
  return lists;
}

}  // namespace coppice::app
