// The prompts that decoding is measured on.
#pragma once

#include <coppice/coppice.h>

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

namespace coppice::app {

struct NamedPrompt {
  std::string name, text;  // "task_id", "question_id", or the number of the line
};
// JSON lines; `limit` of them, spread over the file (0: all). An error names the line that is no prompt.
Result<std::vector<NamedPrompt>> read_prompts(const std::string& path, int limit);

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
