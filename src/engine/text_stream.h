// From tokens to the text a person sees: whole characters only, and nothing that might still become a stop
// string.
#pragma once

#include <coppice/token.h>

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace coppice::core {

class TextStream {
 public:
  // `begins`: the text begins here or follows a control token (TokenBytes).
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops, bool show_special,
             bool begins = false);

  // Takes one token. True when a stop string is complete: the text ends before it. What may be shown now is
  // appended to `out`.
  bool push(Token token, std::string& out);
  // The answer is over: shows what was held back.
  void finish(std::string& out);

 private:
  void release(std::size_t bytes, std::string& out);
  std::size_t possible_stop() const;  // bytes of pending_ that surely belong to no stop string

  TokenBytes bytes_;
  std::vector<std::string> stops_;
  bool stopped_ = false;
  std::string pending_;  // bytes not shown yet
  Utf8Stream utf8_;
};

}  // namespace coppice::core
