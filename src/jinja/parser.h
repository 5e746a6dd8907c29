// Tokens to a program. The grammar is jinja2's; what a chat template has no use for (extends, import,
// include, block, recursive loops, autoescape) is refused.
#pragma once

#include <coppice/error.h>

#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace coppice::core::jinja {

// Errors begin with line and column.
Result<Program> parse(std::string_view source);

class Parser {
 public:
  Parser(std::string_view source, std::vector<Token> tokens);
  Result<Program> run();

 private:
  static constexpr int kDeepest = 100;  // brackets and blocks in one another
  static constexpr int kTallest = 200;  // of an expression's tree: a + b + c + ... is as tall as it is long

  // One more level for as long as it lives.
  struct Level {
    explicit Level(int& of) : depth(of) { ++depth; }
    ~Level() { --depth; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    int& depth;
  };

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool skip_sign(std::string_view spelled);
  bool skip_name(std::string_view spelled);
  Status expect_sign(std::string_view spelled);
  Result<std::string> expect_name(std::string_view what);
  Status expect_block_end();
  tl::unexpected<Error> wrong(std::uint32_t at, std::string_view what) const;
  tl::unexpected<Error> unexpected(std::string_view wanted) const;
  Symbol symbol(std::string_view name);
  Status check_depth() const;

  // -- parse_statements.cc
  Result<Body> body(std::initializer_list<std::string_view> ends, std::string_view opened);
  Result<std::shared_ptr<const Body>> block(std::initializer_list<std::string_view> ends,
                                            std::string_view opened);
  // The same, in a scope where break and continue have no loop.
  Result<std::shared_ptr<const Body>> closed_block(std::string_view end, std::string_view opened);
  Status statement(Body& out);
  Status print(Body& out, std::uint32_t at);
  Status for_loop(Body& out, std::uint32_t at);
  Status branches(Body& out, std::uint32_t at);
  Status set(Body& out, std::uint32_t at);
  Status macro(Body& out, std::uint32_t at);
  Status call_block(Body& out, std::uint32_t at);
  Status filter_block(Body& out, std::uint32_t at);
  Status with(Body& out, std::uint32_t at);
  Status generation(Body& out, std::uint32_t at);
  Status jump(Body& out, std::uint32_t at, Statement::Kind kind);
  Result<Target> target(bool with_namespace);
  Result<Target> one_target(bool with_namespace);
  Status parameters(MacroDefinition& macro);
  Status macro_body(MacroDefinition& macro, std::string_view end, std::string_view opened);

  // -- parse_expressions.cc
  Result<ExpressionPtr> expression(bool with_choice = true);
  Result<ExpressionPtr> tuple(bool with_choice, bool parentheses);
  bool tuple_ends() const;
  Result<ExpressionPtr> choice();
  Result<ExpressionPtr> either();
  Result<ExpressionPtr> both();
  Result<ExpressionPtr> inverted();
  Result<ExpressionPtr> comparison();
  Result<ExpressionPtr> sum();
  Result<ExpressionPtr> concatenation();
  Result<ExpressionPtr> product();
  Result<ExpressionPtr> power();
  Result<ExpressionPtr> unary(bool with_filter);
  Result<ExpressionPtr> primary();
  Result<ExpressionPtr> list();
  Result<ExpressionPtr> dict();
  Result<ExpressionPtr> postfix(ExpressionPtr value);
  Result<ExpressionPtr> filters(ExpressionPtr value);
  Result<ExpressionPtr> subscript(ExpressionPtr value);
  Result<ExpressionPtr> in_brackets(ExpressionPtr value, std::uint32_t at);
  Result<ExpressionPtr> call(ExpressionPtr value);
  Result<ExpressionPtr> filter(ExpressionPtr value);  // behind the |
  Result<ExpressionPtr> test(ExpressionPtr value);
  Result<std::string> dotted_name(std::string_view what);
  Status arguments(CallArguments& out);
  Result<ExpressionPtr> node(Expression::Kind kind, std::uint32_t at, std::vector<ExpressionPtr> parts) const;
  Result<ExpressionPtr> finish(ExpressionPtr made) const;

  // Filters and tests that do not exist: an error, unless a condition stands before them, for jinja2 lets a
  // template ask first whether there is one.
  struct Unknown {
    std::uint32_t at;
    std::string what;
    bool certain;
  };
  void forgive(std::size_t from);
  void hold_against(std::size_t from);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Program program_;
  std::unordered_map<std::string, Symbol> symbols_;
  int depth_ = 0;
  int loops_ = 0;  // that break and continue may mean
  std::vector<Unknown> unknown_;
  std::vector<std::uint32_t> uses_;  // [symbols] of each name
};

}  // namespace coppice::core::jinja
