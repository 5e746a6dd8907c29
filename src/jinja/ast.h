// A template as a tree. Names of variables are numbers (Program::names).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace coppice::core::jinja {

using Symbol = std::uint32_t;
struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal, more, more_equal, in, not_in };

// What a call, a filter or a test is given, besides the value before it.
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional, more_named;  // *list, **dict
};

struct Expression {
  enum class Kind : std::uint8_t {
    constant,     // value
    name,         // symbol
    list,         // parts
    tuple,        // parts
    dict,         // parts: key, value, key, value, ...
    negate,       // parts[0]
    plus,         // parts[0]
    invert,       // not parts[0]
    arithmetic,   // parts[0] op parts[1]
    concatenate,  // parts[0] ~ parts[1] ~ ...
    compare,      // parts[0] comparisons[0] parts[1] comparisons[1] ...
    both,         // parts[0] and parts[1]
    either,       // parts[0] or parts[1]
    choose,       // parts[1] if parts[0] else parts[2], which may be null
    attribute,    // parts[0].text
    item,         // parts[0][parts[1]]
    slice,        // parts[0][parts[1]:parts[2]:parts[3]], which may be null
    call,         // parts[0](arguments)
    filter,       // parts[0] | text(arguments); parts[0] is null where a block is filtered
    test,         // parts[0] is text(arguments)
  };
  Kind kind;
  std::uint32_t at = 0;  // byte of the source
  int depth = 1;
  Symbol symbol = 0;
  Operator op = Operator::add;
  std::string text;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<Comparison> comparisons;
  CallArguments arguments;
};

struct Statement;
using Body = std::vector<Statement>;

// Where values go: a name, a namespace's attribute, or a tuple of targets.
struct Target {
  std::uint32_t at = 0;
  Symbol symbol = 0;
  std::string attribute;  // not empty: of the namespace `symbol`
  std::vector<Target> parts;
  bool is_tuple = false;
};

struct Parameter {
  Symbol symbol;
  std::string name;
  ExpressionPtr otherwise;  // null: it has no default
};

struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  std::shared_ptr<const Body> body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
  Symbol caller = 0, varargs = 0, kwargs = 0;
};

struct Branch {
  ExpressionPtr condition;  // null: else
  std::shared_ptr<const Body> body;
};

struct Statement {
  enum class Kind : std::uint8_t {
    data,          // text
    print,         // expression
    loop,          // for target in expression if condition: body, otherwise
    branch,        // branches
    set,           // target = expression
    set_block,     // target = body, through expression (a filter) if that is there
    macro,         // macro, bound to symbol
    call_block,    // call expression with macro as its caller
    filter_block,  // body through expression
    scope,         // targets = values, then body: with, generation
    leave,         // break
    next,          // continue
  };
  Kind kind;
  std::uint32_t at = 0;
  std::string text;
  ExpressionPtr expression, condition;
  Target target;
  Symbol symbol = 0;
  std::vector<Branch> branches;
  std::shared_ptr<const Body> body, otherwise;
  std::shared_ptr<const MacroDefinition> macro;
  std::vector<std::pair<Target, ExpressionPtr>> values;
};

struct Program {
  std::string source;  // newlines normalised
  std::vector<std::string> names;
  Body body;
  Symbol loop = 0;
};

}  // namespace coppice::core::jinja
