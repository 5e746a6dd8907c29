// The prompts that decoding is measured on.
#pragma once

#include <coppice/coppice.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace coppice::app {

struct NamedPrompt {
  std::string name, text;  // "task_id", "question_id", or the number of the line
  std::string category;    // where the line has one
};
struct JsonLine {
  int number = 0;  // in the file
  nlohmann::ordered_json json;
};
// Lines that are empty are left out; an error names the first that is no object.
Result<std::vector<JsonLine>> read_json_lines(const std::string& path);
// JSON lines; `limit` of them, spread over the file (0: all). An error names the line that is no prompt.
Result<std::vector<NamedPrompt>> read_prompts(const std::string& path, int limit);

// `limit` of all, evenly; 0: all.
template <class T>
std::vector<T> spread(const std::vector<T>& all, int limit) {
  const std::size_t wanted =
      limit > 0 ? std::min<std::size_t>(static_cast<std::size_t>(limit), all.size()) : all.size();
  std::vector<T> some;
  for (std::size_t i = 0; i < wanted; ++i) some.push_back(all[i * all.size() / wanted]);
  return some;
}

struct PromptFlags {
  std::string path, instruction;
  int limit = 0;
  bool chat = false;

  void add(CLI::App& command);
  // Texts; an error names the line that is none.
  Result<std::vector<std::string>> read() const;
  // With what stands around them; an error names the prompt that is too long for `context`.
  Result<std::vector<std::vector<Token>>> tokenise(const Model& model, std::span<const std::string> prompts,
                                                   int context) const;
};

}  // namespace coppice::app
