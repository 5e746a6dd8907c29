#include "jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "jinja/print.h"

namespace coppice::core::jinja {
namespace {

// Sets a variable back when it goes out of scope.
template <class T>
class Restored {
 public:
  Restored(T& variable, T value) : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~Restored() { variable_ = std::move(before_); }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace

const Value* Scope::find(Symbol symbol) const {
  for (const Scope* scope = this; scope; scope = scope->parent.get())
    for (const auto& [known, value] : scope->values)
      if (known == symbol) return &value;
  return nullptr;
}

void Scope::set(Symbol symbol, Value value) {
  for (auto& [known, held] : values)
    if (known == symbol) return void(held = std::move(value));
  values.emplace_back(symbol, std::move(value));
}

Interpreter::Interpreter(const Program& program, Runtime& runtime, std::shared_ptr<Scope> globals)
    : program_(program), runtime_(runtime), scope_(std::move(globals)) {
  scope_ = inner_scope();
}

Result<Text> Interpreter::run() {
  Text out;
  out_ = &out;
  COPPICE_TRY_STATUS(run(program_.body).map([](Flow) {}));
  return out;
}

Status Interpreter::check_depth(std::uint32_t at) const {
  if (depth_ > runtime_.limits().depth)
    return fail_at(
        program_.source, at,
        fmt::format("macros and blocks are in one another more than {} steps deep, which is the limit",
                    runtime_.limits().depth));
  return {};
}

std::shared_ptr<Scope> Interpreter::inner_scope() const {
  auto scope = std::make_shared<Scope>();
  scope->parent = scope_;
  return scope;
}

Result<Interpreter::Flow> Interpreter::run(const Body& body) {
  for (const Statement& statement : body) {
    COPPICE_TRY(const Flow flow, run(statement));
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Result<Interpreter::Flow> Interpreter::run(const Statement& statement) {
  const Restored<int> level(depth_, depth_ + 1);
  COPPICE_TRY_STATUS(check_depth(statement.at));
  COPPICE_TRY_STATUS(located(statement.at, runtime_.charge(kStep)));
  Status status;
  using Kind = Statement::Kind;
  switch (statement.kind) {
    case Kind::data:
      status = located(statement.at, runtime_.charge(statement.text.size()));
      out_->append(statement.text);
      break;
    case Kind::print: {
      COPPICE_TRY(const Value value, evaluate(*statement.expression));
      status = write(statement.at, value);
      break;
    }
    case Kind::loop:
      return loop(statement);
    case Kind::branch:
      return branch(statement);
    case Kind::set: {
      COPPICE_TRY(const Value value, evaluate(*statement.expression));
      status = assign(statement.target, value);
      break;
    }
    case Kind::set_block:
      status = set_block(statement);
      break;
    case Kind::macro: {
      COPPICE_TRY(Macro * macro, located(statement.at, runtime_.make<Macro>(statement.macro.get(), scope_)));
      scope_->set(statement.symbol, Value(static_cast<Object*>(macro)));
      break;
    }
    case Kind::call_block:
      status = call_block(statement);
      break;
    case Kind::filter_block:
      status = filter_block(statement);
      break;
    case Kind::scope:
      return scope(statement);
    case Kind::leave:
      return Flow::leave;
    case Kind::next:
      return Flow::next;
  }
  COPPICE_TRY_STATUS(status);
  return Flow::on;
}

Status Interpreter::write(std::uint32_t at, const Value& value) {
  COPPICE_TRY(const Text text, located(at, runtime_.to_text(value)));
  out_->append(text);
  return {};
}

Status Interpreter::assign(const Target& target, const Value& value) {
  if (target.is_tuple) {
    COPPICE_TRY(const std::vector<Value> items, located(target.at, runtime_.iterate(value)));
    if (items.size() != target.parts.size())
      return fail_at(
          program_.source, target.at,
          fmt::format("{} names are assigned to and there are {} values", target.parts.size(), items.size()));
    for (std::size_t i = 0; i < items.size(); ++i) COPPICE_TRY_STATUS(assign(target.parts[i], items[i]));
    return {};
  }
  if (target.attribute.empty()) {
    scope_->set(target.symbol, value);
    return {};
  }
  const Value* space = scope_->find(target.symbol);
  Object* object = space ? space->object() : nullptr;
  if (!object || object->kind != Object::Kind::space)
    return fail_at(program_.source, target.at,
                   fmt::format("only a namespace's attributes can be assigned to, and {} is none",
                               program_.names[target.symbol]));
  auto& attributes = static_cast<Namespace*>(object)->attributes;
  COPPICE_TRY_STATUS(located(target.at, runtime_.charge(8 * attributes.size())));
  if (Value* held = static_cast<Namespace*>(object)->find(target.attribute)) {
    *held = value;
  } else {
    attributes.emplace_back(target.attribute, value);
  }
  return {};
}

// With a condition: the items for which it holds, each as the target of a scope of its own.
Result<std::vector<Value>> Interpreter::loop_items(const Statement& statement) {
  COPPICE_TRY(const Value over, evaluate(*statement.expression));
  COPPICE_TRY(std::vector<Value> items, located(statement.expression->at, runtime_.iterate(over)));
  if (!statement.condition) return items;
  std::vector<Value> chosen;
  for (Value& item : items) {
    const Restored<std::shared_ptr<Scope>> scope(scope_, inner_scope());
    COPPICE_TRY_STATUS(assign(statement.target, item));
    COPPICE_TRY(const Value holds, evaluate(*statement.condition));
    if (truth(holds)) chosen.push_back(std::move(item));
  }
  return chosen;
}

Result<Interpreter::Flow> Interpreter::loop(const Statement& statement) {
  COPPICE_TRY(Loop * loop, located(statement.at, runtime_.make<Loop>()));
  COPPICE_TRY(loop->items, loop_items(statement));
  bool completed = false;  // an iteration, neither left by break nor by continue: jinja2 asks that for `else`
  for (loop->at = 0; loop->at < loop->items.size(); ++loop->at) {
    COPPICE_TRY_STATUS(located(statement.at, runtime_.charge(4 * kStep)));
    const Restored<std::shared_ptr<Scope>> scope(scope_, inner_scope());
    COPPICE_TRY_STATUS(assign(statement.target, loop->items[loop->at]));
    scope_->set(program_.loop, Value(static_cast<Object*>(loop)));
    COPPICE_TRY(const Flow flow, run(*statement.body));
    completed = completed || flow == Flow::on;
    if (flow == Flow::leave) break;
  }
  return !completed && statement.otherwise ? run(*statement.otherwise) : Flow::on;
}

Result<Interpreter::Flow> Interpreter::branch(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    bool holds = true;
    if (branch.condition) {
      COPPICE_TRY(const Value value, evaluate(*branch.condition));
      holds = truth(value);
    }
    if (holds) return run(*branch.body);
  }
  return Flow::on;
}

Result<Text> Interpreter::captured(const Body& body, std::shared_ptr<Scope> scope) {
  Text text;
  const Restored<std::shared_ptr<Scope>> inner(scope_, std::move(scope));
  const Restored<Text*> out(out_, &text);
  COPPICE_TRY_STATUS(run(body).map([](Flow) {}));
  return text;
}

Status Interpreter::set_block(const Statement& statement) {
  COPPICE_TRY(Text text, captured(*statement.body, inner_scope()));
  Value value(std::move(text));
  if (statement.expression) {
    COPPICE_TRY(value, filter(*statement.expression, &value));
  }
  return assign(statement.target, value);
}

Status Interpreter::filter_block(const Statement& statement) {
  COPPICE_TRY(Text text, captured(*statement.body, inner_scope()));
  const Value inside(std::move(text));
  COPPICE_TRY(const Value value, filter(*statement.expression, &inside));
  return write(statement.at, value);
}

Status Interpreter::call_block(const Statement& statement) {
  COPPICE_TRY(Macro * macro, located(statement.at, runtime_.make<Macro>(statement.macro.get(), scope_)));
  const Value caller(static_cast<Object*>(macro));
  COPPICE_TRY(const Value value, call(*statement.expression, &caller));
  return write(statement.at, value);
}

// The values are those of the scope around it.
Result<Interpreter::Flow> Interpreter::scope(const Statement& statement) {
  std::vector<Value> values;
  for (const auto& [target, expression] : statement.values) {
    COPPICE_TRY(values.emplace_back(), evaluate(*expression));
  }
  const Restored<std::shared_ptr<Scope>> inner(scope_, inner_scope());
  for (std::size_t i = 0; i < values.size(); ++i)
    COPPICE_TRY_STATUS(assign(statement.values[i].first, values[i]));
  return run(*statement.body);
}

// The message of an error is without its place, unless it comes from the body.
Result<Value> Interpreter::call_macro(const Macro& macro, Arguments given) {
  const MacroDefinition& definition = *macro.definition;
  auto scope = std::make_shared<Scope>();
  scope->parent = macro.scope;
  const auto take_named = [&](std::string_view name, Value& value) {
    for (auto it = given.named.begin(); it != given.named.end(); ++it) {
      if (it->first != name) continue;
      value = std::move(it->second);
      given.named.erase(it);
      return true;
    }
    return false;
  };
  const Restored<std::shared_ptr<Scope>> inner(scope_, scope);
  const std::size_t count = definition.parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = definition.parameters[i];
    Value value(undefined(fmt::format("parameter {} was not given", in_quotes(parameter.name))));
    bool is_given = i < given.positional.size();
    if (is_given) {
      value = given.positional[i];
    } else {
      is_given = take_named(parameter.name, value);
    }
    if (!is_given && parameter.otherwise) {
      COPPICE_TRY(value, evaluate(*parameter.otherwise));
    }
    scope->set(parameter.symbol, std::move(value));
  }
  if (definition.uses_caller) {
    Value caller(undefined("this macro was not called by a call block"));
    take_named("caller", caller);
    scope->set(definition.caller, std::move(caller));
  }
  if (definition.uses_kwargs) {
    std::vector<std::pair<Value, Value>> named;
    for (auto& [name, value] : given.named) named.emplace_back(Value(name), std::move(value));
    COPPICE_TRY(Value dict, make_dict(std::move(named)));
    scope->set(definition.kwargs, std::move(dict));
  } else if (!given.named.empty()) {
    return fail(fmt::format("the macro {} takes no argument {}", definition.name, given.named[0].first));
  }
  if (definition.uses_varargs) {
    std::vector<Value> more;
    if (given.positional.size() > count)
      more.assign(given.positional.begin() + static_cast<std::ptrdiff_t>(count), given.positional.end());
    COPPICE_TRY(Value tuple, runtime_.list(Sequence::Form::tuple, std::move(more)));
    scope->set(definition.varargs, std::move(tuple));
  } else if (given.positional.size() > count) {
    return fail(fmt::format("the macro {} takes {} arguments and got {}", definition.name, count,
                            given.positional.size()));
  }
  COPPICE_TRY(Text text, captured(*definition.body, scope));
  return Value(std::move(text));
}

}  // namespace coppice::core::jinja
