// A model's text as it comes, taken apart into what it says and the tools it calls. Text that may still
// become a call is held back until that is clear; what turns out to be none is text again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "call_object.h"
#include "tool_families.h"
#include "tools.h"

namespace coppice::serve {

struct CallPiece {
  enum class Kind { content, call, arguments };
  Kind kind = Kind::content;
  int index = 0;     // of the call
  std::string text;  // content, a call's name, or the next part of its arguments
};

class ToolCallReader {
 public:
  // `family` lives for ever (tool_family). `inside`: the prompt ended with what opens a call.
  ToolCallReader(const ToolFamily& family, Tools tools, bool inside);

  std::vector<CallPiece> push(std::string_view text);
  std::vector<CallPiece> finish();  // the answer is over
  int calls() const { return calls_; }

 private:
  // text: what is said. opening: behind a mark. object: in a call. between: behind one.
  enum class State { text, opening, object, between };

  bool step(std::vector<CallPiece>& out);  // false: it needs more text
  bool read_text(std::vector<CallPiece>& out);
  bool read_opening(std::vector<CallPiece>& out);
  bool read_named(std::vector<CallPiece>& out);
  bool read_object(std::vector<CallPiece>& out);
  bool read_between();
  bool drop_marks();  // and whitespace, at the start of what is held
  void say(std::string text, std::vector<CallPiece>& out);
  void show_call(std::vector<CallPiece>& out);
  bool no_call(std::vector<CallPiece>& out);  // it looked like one
  bool believes(const std::string& name) const;

  const ToolFamily* family_;
  Tools tools_;
  State state_;
  bool bare_;            // a call without a mark is possible: nothing was said yet
  bool marked_ = false;  // a mark stood before this call
  std::string held_;     // not read yet
  std::string seen_;     // of a call that may be none: what was read of it
  std::optional<CallObject> object_;
  bool list_ = false, shown_ = false;
  std::size_t sent_ = 0;  // bytes of the call's arguments that were shown
  int calls_ = 0;
};

}  // namespace coppice::serve
