// A place in a text that is read from its beginning: what the parsers here have in common.
#pragma once

#include <cstddef>
#include <string_view>

namespace coppice::core::grammar {

class Cursor {
 protected:
  explicit Cursor(std::string_view text) : text_(text) {}
  bool end() const { return at_ >= text_.size(); }
  char peek() const { return end() ? '\0' : text_[at_]; }  // what comes next; at the end '\0'
  // Whether this comes next, and then it is passed.
  bool take(char c) {
    if (end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace coppice::core::grammar
