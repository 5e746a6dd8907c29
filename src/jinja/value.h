// What a template's variables hold: Python's values, as far as templates use them. A value is cheap to copy
// and never changes; only a namespace does, and a generator, which can be read once.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/text.h"

namespace coppice::core::jinja {

class Value;

// A name, an attribute or an item that is not there, or that the sandbox keeps. It prints as nothing, is
// false and has no items; most else fails with `why`.
struct Undefined {
  std::shared_ptr<const std::string> why;
};

// list, tuple, range and whatever else has items in order.
struct Sequence {
  enum class Form { list, tuple, range, generator, iterator, dict_items, dict_keys, dict_values };
  Form form = Form::list;
  std::vector<Value> items;
  int depth = 1;                               // of sequences and dicts in one another
  std::uint64_t weight = 1;                    // see Value::weight
  std::int64_t start = 0, stop = 0, step = 1;  // of a range
  mutable std::size_t taken = 0;               // of a generator or iterator: what has been read
  bool once() const { return form == Form::generator || form == Form::iterator; }
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;  // in order of insertion; keys differ
  int depth = 1;
  std::uint64_t weight = 1;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};

struct MethodRow;
// `value.name` where that is a method: called later, or never.
struct Method {
  std::shared_ptr<const Value> self;
  const MethodRow* row;
};

// Namespaces, macros, loops and functions; the runtime that made them owns them.
struct Object {
  enum class Kind { space, macro, loop, function, loop_method };
  explicit Object(Kind object_kind) : kind(object_kind) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  const Kind kind;
};

class Value {
 public:
  using SequencePtr = std::shared_ptr<const Sequence>;
  using DictPtr = std::shared_ptr<const Dict>;
  using TextPtr = std::shared_ptr<const Text>;
  enum class Kind { undefined, none, boolean, integer, number, text, sequence, dict, method, object };

  Value() : data_(nullptr) {}  // none
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  explicit Value(bool value) : data_(value) {}
  explicit Value(std::int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(Text text) : data_(std::make_shared<const Text>(std::move(text))) {}
  explicit Value(std::string_view own) : Value(Text(std::string(own))) {}
  explicit Value(const char* own) : Value(std::string_view(own)) {}
  explicit Value(Sequence sequence) : data_(std::make_shared<const Sequence>(std::move(sequence))) {}
  explicit Value(Dict dict) : data_(std::make_shared<const Dict>(std::move(dict))) {}
  explicit Value(Method method) : data_(std::move(method)) {}
  explicit Value(Object* object) : data_(object) {}

  Kind kind() const;
  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(data_); }
  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&data_); }
  const double* number() const { return std::get_if<double>(&data_); }
  const Text* text() const;
  const Sequence* sequence() const;
  const Dict* dict() const;
  const Method* method() const { return std::get_if<Method>(&data_); }
  Object* object() const;

  // bool or int, as Python counts them.
  bool to_integer(std::int64_t& value) const;
  // bool, int or float.
  bool to_number(double& value) const;
  // How deep it nests: 0 for what holds no other values.
  int depth() const;
  // About how many bytes it would print as, which is what comparing or printing it may cost: a list that
  // holds the same list twice counts it twice.
  std::uint64_t weight() const;

 private:
  std::variant<Undefined, std::nullptr_t, bool, std::int64_t, double, TextPtr, SequencePtr, DictPtr, Method,
               Object*>
      data_;
};

Undefined undefined(std::string why);
// A list (or another form) that knows its depth and weight; a dict likewise. Fails if it is deeper than
// kMaxDepth.
constexpr int kMaxDepth = 200;
Result<Value> make_sequence(Sequence::Form form, std::vector<Value> items);
Result<Value> make_dict(std::vector<std::pair<Value, Value>> entries);

std::string_view type_name(const Value& value);  // Python's word: "str", "list", "NoneType"
bool hashable(const Value& value);               // may it be a dict's key?
bool truth(const Value& value);
bool equal(const Value& a, const Value& b);
// -1, 0 or 1; 2 if one is not a number (NaN), which is neither less nor more; fails for values that have no
// order.
Result<int> compare(const Value& a, const Value& b);

}  // namespace coppice::core::jinja
