// What a rendering has while it runs: its limits, the objects it made, and what filters, tests, methods and
// functions see of it. Messages of these say what is wrong; the interpreter says where.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace coppice::core::jinja {

// A template comes with a file from somewhere: it may ask for anything, and gets this much.
struct Limits {
  std::uint64_t work = std::uint64_t{1}
                       << 28;  // bytes made or compared, and kStep for each step: below a second
  int depth = 500;             // of expressions and statements in one another, macros' included
};
constexpr std::uint64_t kStep = 64;  // what one step of a program counts
constexpr std::uint64_t kItem = 48;  // and one item of a new list

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // Where the argument for each of `names` is; null where none was given. A name that begins with '/' takes
  // none by name. Fails for arguments too many, given twice or unknown; `what` is who takes them.
  Status bind(std::string_view what, std::initializer_list<std::string_view> names,
              const Value** slots) const;
};

struct Namespace : Object {
  Namespace() : Object(Kind::space) {}
  std::vector<std::pair<std::string, Value>> attributes;
  Value* find(std::string_view name);
};

struct Loop : Object {
  Loop() : Object(Kind::loop) {}
  std::vector<Value> items;
  std::size_t at = 0;
  int depth = 1;  // of recursive loops, which there are not
  Value last_changed;
  bool changed_before = false;
  std::string show() const;
};

struct LoopMethod : Object {
  LoopMethod(Loop* whose, bool cycles) : Object(Kind::loop_method), loop(whose), cycle(cycles) {}
  Loop* loop;
  bool cycle;  // or `changed`
};

class Runtime;
struct Function : Object {
  using Run = Result<Value> (*)(Runtime&, const Arguments&);
  Function(std::string_view called, Run runs) : Object(Kind::function), name(called), run(runs) {}
  std::string_view name;
  Run run;
};

class Runtime {
 public:
  // `now`: what strftime_now shows, in seconds since 1970, UTC.
  Runtime(const Limits& limits, std::int64_t now) : limits_(limits), now_(now) {}

  Status charge(std::uint64_t units);
  // Charges for it and keeps it as long as this lives.
  template <class Kind, class... Parts>
  Result<Kind*> make(Parts&&... parts) {
    auto charged = charge(512);
    if (!charged) return tl::unexpected(std::move(charged).error());
    auto made = std::make_unique<Kind>(std::forward<Parts>(parts)...);
    Kind* object = made.get();
    objects_.push_back(std::move(made));
    return object;
  }
  Result<Value> text(Text text);  // charged for
  Result<Value> list(Sequence::Form form, std::vector<Value> items);
  std::int64_t now() const { return now_; }
  const Limits& limits() const { return limits_; }

  // What a `for` would see, in order; a generator is then read out. Fails for what is not iterable.
  Result<std::vector<Value>> iterate(const Value& value);
  Result<Text> to_text(const Value& value);                          // charged for
  Result<bool> contains(const Value& container, const Value& item);  // item in container
  Result<std::int64_t> length(const Value& value);

  // value.name and value[key]: missing ones are Undefined values, not errors.
  Result<Value> attribute(const Value& value, std::string_view name);
  Result<Value> item(const Value& value, const Value& key);
  Result<Value> slice(const Value& value, const Value& start, const Value& stop, const Value& step);

  Result<Value> filter(std::string_view name, const Value& self, const Arguments& arguments);
  Result<bool> test(std::string_view name, const Value& self, const Arguments& arguments);
  // Anything but a macro.
  Result<Value> call(const Value& callee, const Arguments& arguments);

 private:
  Limits limits_;
  std::int64_t now_;
  std::uint64_t work_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

bool filter_exists(std::string_view name);
bool test_exists(std::string_view name);
Result<Value> call_method(Runtime& runtime, const Method& method, const Arguments& arguments);
// The method of that name; null if such a value has none. One that would change the value has no `run`.
const MethodRow* find_method(const Value& value, std::string_view name);
// Python's names there are in every template.
const std::vector<std::pair<std::string_view, Function::Run>>& builtin_functions();

// -- arithmetic.cc
// ---------------------------------------------------------------------------------------------------
enum class Operator : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
Result<Value> arithmetic(Runtime& runtime, Operator op, const Value& left, const Value& right);
Result<Value> negate(const Value& value);
Result<Value> concatenate(Runtime& runtime, std::span<const Value> values);  // `~`
// Python's "..." % value, and "...".format(...).
Result<Value> percent_format(Runtime& runtime, const Text& format, const Value& values);
Result<Value> brace_format(Runtime& runtime, const Text& format, const Arguments& arguments);
Text escape_html(const Text& text);  // markup

}  // namespace coppice::core::jinja
