// What an answer may look like. A grammar says which texts are allowed; at each draw the tokens that lead out
// of it are masked (docs/grammar.md). A handle: cheap to copy, immutable, thread-safe.
#pragma once

#include <coppice/error.h>

#include <memory>
#include <string_view>

namespace coppice {

class Grammar {
 public:
  // Rules in GBNF style, the first symbol is `root`:
  //   root ::= "yes" | "no" | number
  //   number ::= [1-9] [0-9]{0,3}
  // An error names line and column. Left recursion and rules that are not defined are refused.
  static Result<Grammar> parse(std::string_view text);

  // The JSON texts that are valid under a schema, members in the schema's order. A keyword that would
  // constrain and cannot be kept is refused by its name and place (JSON pointer).
  static Result<Grammar> json_schema(std::string_view text);

  // Any JSON object.
  static Grammar json_object();

  // The whole text is allowed.
  bool accepts(std::string_view text) const;

  struct Impl;
  explicit Grammar(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }
  const std::shared_ptr<const Impl>& shared() const { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace coppice
