// The tools that a request offers to the model, and whether it has to call one.
#pragma once

#include <string>
#include <vector>

#include "output_format.h"

namespace coppice::serve {

struct Tool {
  std::string name, description;
  Json parameters;  // a JSON Schema of an object
};

struct Tools {
  enum class Choice { none, automatic, required, named };
  std::vector<Tool> list;
  std::string json;  // as a chat template wants them; empty: there are none, or none may be called
  Choice choice = Choice::automatic;
  std::string named;     // with Choice::named
  bool parallel = true;  // several calls in one answer

  bool offered() const { return !list.empty() && choice != Choice::none; }
  bool forced() const { return offered() && choice != Choice::automatic; }
  bool knows(std::string_view name) const;
};

// tools, tool_choice, parallel_tool_calls; what came before them, functions and function_call, is refused.
Tools read_tools(Fields& fields);
// Ollama's: the list alone.
Tools read_tool_list(Fields& fields);

// A call that must be made, of one tool or of any: an object of its name and its arguments, by these keys.
OutputFormat forced_call_format(const Tools& tools, std::string_view name_key,
                                std::string_view arguments_key);

// What tells a model about tools whose template does not.
std::string describe_tools(const Tools& tools);

}  // namespace coppice::serve
