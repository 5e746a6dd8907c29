// How models write calls of tools into their text: one row a family, found by what the model's chat template
// contains. To add a family: a row in tool_families.cc and a case in tool_calls_test.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace coppice::serve {

struct ToolFamily {
  std::string_view name;
  std::span<const std::string_view> marks;  // a template with one of these is of the family; empty: any
  std::span<const std::string_view> opens;  // one of these stands before a call, or before several
  std::span<const std::string_view> drops;  // these may stand around calls and mean nothing
  std::string_view name_key, arguments_key;
  bool bare;  // a whole answer that is JSON is a call, without any mark
  // Where a call is required: it is put behind the prompt, and the model writes the object.
  std::string_view forced_open;
};

const ToolFamily& tool_family(std::string_view chat_template);
std::span<const ToolFamily> tool_families();

}  // namespace coppice::serve
