// Runs a program. One interpreter is one rendering.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "jinja/ast.h"
#include "jinja/lexer.h"
#include "jinja/runtime.h"

namespace coppice::core::jinja {

// What `set` and a loop's target write to. A loop's body gets a new one each time, a macro's call too; an
// `if` has none of its own.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<Symbol, Value>> values;

  const Value* find(Symbol symbol) const;
  void set(Symbol symbol, Value value);
};

struct Macro : Object {
  Macro(const MacroDefinition* what, std::shared_ptr<Scope> where)
      : Object(Kind::macro), definition(what), scope(std::move(where)) {}
  const MacroDefinition* definition;
  std::shared_ptr<Scope> scope;
};

class Interpreter {
 public:
  Interpreter(const Program& program, Runtime& runtime, std::shared_ptr<Scope> globals);
  Result<Text> run();

 private:
  enum class Flow { on, leave, next };

  // -- interpreter.cc: statements
  Result<Flow> run(const Body& body);
  Result<Flow> run(const Statement& statement);
  Result<Flow> loop(const Statement& statement);
  Result<std::vector<Value>> loop_items(const Statement& statement);
  Result<Flow> branch(const Statement& statement);
  Status set_block(const Statement& statement);
  Status call_block(const Statement& statement);
  Status filter_block(const Statement& statement);
  Result<Flow> scope(const Statement& statement);
  Status write(std::uint32_t at, const Value& value);
  Status assign(const Target& target, const Value& value);
  // What a body writes, in a scope of its own.
  Result<Text> captured(const Body& body, std::shared_ptr<Scope> scope);
  std::shared_ptr<Scope> inner_scope() const;
  Result<Value> call_macro(const Macro& macro, Arguments arguments);

  // -- evaluate.cc: expressions
  Result<Value> evaluate(const Expression& expression);
  Result<Value> evaluate_parts(const Expression& expression);
  Result<Value> evaluate_dict(const Expression& expression);
  Result<Value> compare_chain(const Expression& expression);
  Result<bool> compare_two(Comparison comparison, const Value& left, const Value& right);
  Result<Value> slice(const Expression& expression);
  Result<Value> call(const Expression& expression, const Value* caller);
  // `base`: what a block's filters are applied to.
  Result<Value> filter(const Expression& expression, const Value* base);
  Result<Value> test(const Expression& expression);
  Result<Arguments> arguments(const CallArguments& given);
  Result<Value> name(const Expression& expression) const;

  template <class T>
  Result<T> located(std::uint32_t at, Result<T> result) const;
  Status check_depth(std::uint32_t at) const;

  const Program& program_;
  Runtime& runtime_;
  std::shared_ptr<Scope> scope_;
  Text* out_ = nullptr;
  int depth_ = 0;
};

// Says where, of what the runtime said only what.
template <class T>
Result<T> Interpreter::located(std::uint32_t at, Result<T> result) const {
  if (!result) return fail_at(program_.source, at, result.error().message);
  return result;
}

}  // namespace coppice::core::jinja
