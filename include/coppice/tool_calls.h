// How models write calls of tools into their text, and the text taken apart again: what is said, and what is
// called.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

struct ToolCall {
  std::string id, name;
  std::string arguments;  // JSON text of an object; empty: {}
};

// One family of models, found by what a chat template contains. To add one: a row in
// src/text/tool_families.cc and a case in tool_calls_test.cc.
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

const ToolFamily& tool_family(std::string_view chat_template);  // lives for ever
std::span<const ToolFamily> tool_families();

struct ToolCallOptions {
  std::vector<std::string> names;  // of the tools: JSON without a mark is a call only of one of these
  bool parallel = true;            // several calls in one answer; else the first counts
  bool inside = false;             // the prompt ended with what opens a call
};

struct CallPiece {
  enum class Kind { content, call, arguments };
  Kind kind = Kind::content;
  int index = 0;     // of the call
  std::string text;  // content, a call's name, or the next part of its arguments
};

// A model's text as it comes; control tokens must be spelled in it (Request::show_special). Text that may
// still become a call is held back until that is clear; what turns out to be none is text again.
class ToolCallReader {
 public:
  ToolCallReader(const ToolFamily& family, ToolCallOptions options);
  ToolCallReader(ToolCallReader&&) noexcept;
  ToolCallReader& operator=(ToolCallReader&&) noexcept;
  ~ToolCallReader();

  std::vector<CallPiece> push(std::string_view text);
  std::vector<CallPiece> finish();  // the answer is over
  int calls() const;                // that are whole

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A whole answer. Calls have a name and arguments, JSON text as the model wrote it, and no id.
struct AnswerParts {
  std::string content;
  std::vector<ToolCall> calls;
};
AnswerParts read_tool_calls(const ToolFamily& family, ToolCallOptions options, std::string_view answer);

}  // namespace coppice
