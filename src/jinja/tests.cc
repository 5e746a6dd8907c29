// What `value is NAME` asks: a row each.
#include <fmt/format.h>

#include "base/check.h"
#include "jinja/filters.h"
#include "jinja/print.h"
#include "jinja/python_text.h"
#include "jinja/runtime.h"

namespace coppice::core::jinja {
namespace {

struct TestRow {
  std::string_view name;
  int operands;  // besides the value itself
  Result<bool> (*run)(Runtime& runtime, const Value& self, const Value* other);
};

using Kind = Value::Kind;

template <Kind kind>
Result<bool> is_kind(Runtime&, const Value& self, const Value*) {
  return self.kind() == kind;
}

Result<bool> is_defined(Runtime&, const Value& self, const Value*) { return !self.is_undefined(); }
Result<bool> is_true(Runtime&, const Value& self, const Value*) { return self.boolean() && *self.boolean(); }
Result<bool> is_false(Runtime&, const Value& self, const Value*) {
  return self.boolean() && !*self.boolean();
}
Result<bool> is_number(Runtime&, const Value& self, const Value*) {
  double number = 0;
  return self.to_number(number);
}

Result<bool> is_sequence(Runtime&, const Value& self, const Value*) {
  const Sequence* sequence = self.sequence();
  return self.is_undefined() || self.text() || self.dict() ||
         (sequence && sequence->form <= Sequence::Form::range);
}

bool is_loop(const Value& value) { return value.object() && value.object()->kind == Object::Kind::loop; }

Result<bool> is_iterable(Runtime&, const Value& self, const Value*) {
  return self.is_undefined() || self.text() || self.dict() || self.sequence() || is_loop(self);
}

Result<bool> is_callable(Runtime&, const Value& self, const Value*) {
  const bool object = self.object() && self.object()->kind != Object::Kind::space;
  return self.is_undefined() || self.method() || object;
}

Result<bool> is_escaped(Runtime&, const Value& self, const Value*) {
  return self.text() && self.text()->markup;
}

template <bool (*is)(std::string_view)>
Result<bool> text_is(Runtime& runtime, const Value& self, const Value*) {
  COPPICE_TRY(const Text text, runtime.to_text(self));
  COPPICE_TRY_STATUS(runtime.charge(16 * text.size()));
  return is(text.bytes());
}

Result<bool> remainder_is(Runtime& runtime, const Value& self, const Value& by, std::int64_t wanted) {
  COPPICE_TRY(const Value rest, arithmetic(runtime, Operator::modulo, self, by));
  return equal(rest, Value(wanted));
}

Result<bool> is_odd(Runtime& runtime, const Value& self, const Value*) {
  return remainder_is(runtime, self, Value(std::int64_t{2}), 1);
}
Result<bool> is_even(Runtime& runtime, const Value& self, const Value*) {
  return remainder_is(runtime, self, Value(std::int64_t{2}), 0);
}
Result<bool> is_divisible(Runtime& runtime, const Value& self, const Value* other) {
  return remainder_is(runtime, self, *other, 0);
}

template <bool wanted>
Result<bool> is_equal(Runtime& runtime, const Value& self, const Value* other) {
  COPPICE_TRY_STATUS(runtime.charge(std::min(self.weight(), other->weight())));
  return equal(self, *other) == wanted;
}

// -1: less; 1: more.
template <int order, bool or_equal>
Result<bool> is_ordered(Runtime& runtime, const Value& self, const Value* other) {
  COPPICE_TRY_STATUS(runtime.charge(std::min(self.weight(), other->weight())));
  COPPICE_TRY(const int found, compare(self, *other));
  return found == order || (or_equal && found == 0);
}

Result<bool> is_same(Runtime& runtime, const Value& self, const Value* other) {
  if (self.kind() != other->kind()) return false;
  if (self.text()) return self.text() == other->text();
  if (self.sequence()) return self.sequence() == other->sequence();
  if (self.dict()) return self.dict() == other->dict();
  return is_equal<true>(runtime, self, other);
}

Result<bool> is_in(Runtime& runtime, const Value& self, const Value* other) {
  return runtime.contains(*other, self);
}

Result<bool> is_filter(Runtime&, const Value& self, const Value*) {
  return self.text() && filter_exists(self.text()->bytes());
}
Result<bool> is_test(Runtime&, const Value& self, const Value*) {
  return self.text() && test_exists(self.text()->bytes());
}

constexpr TestRow kRows[] = {
    {"!=", 1, is_equal<false>},
    {"<", 1, is_ordered<-1, false>},
    {"<=", 1, is_ordered<-1, true>},
    {"==", 1, is_equal<true>},
    {">", 1, is_ordered<1, false>},
    {">=", 1, is_ordered<1, true>},
    {"boolean", 0, is_kind<Kind::boolean>},
    {"callable", 0, is_callable},
    {"defined", 0, is_defined},
    {"divisibleby", 1, is_divisible},
    {"eq", 1, is_equal<true>},
    {"equalto", 1, is_equal<true>},
    {"escaped", 0, is_escaped},
    {"even", 0, is_even},
    {"false", 0, is_false},
    {"filter", 0, is_filter},
    {"float", 0, is_kind<Kind::number>},
    {"ge", 1, is_ordered<1, true>},
    {"greaterthan", 1, is_ordered<1, false>},
    {"gt", 1, is_ordered<1, false>},
    {"in", 1, is_in},
    {"integer", 0, is_kind<Kind::integer>},
    {"iterable", 0, is_iterable},
    {"le", 1, is_ordered<-1, true>},
    {"lessthan", 1, is_ordered<-1, false>},
    {"lower", 0, text_is<is_lower>},
    {"lt", 1, is_ordered<-1, false>},
    {"mapping", 0, is_kind<Kind::dict>},
    {"ne", 1, is_equal<false>},
    {"none", 0, is_kind<Kind::none>},
    {"number", 0, is_number},
    {"odd", 0, is_odd},
    {"sameas", 1, is_same},
    {"sequence", 0, is_sequence},
    {"string", 0, is_kind<Kind::text>},
    {"test", 0, is_test},
    {"true", 0, is_true},
    {"undefined", 0, is_kind<Kind::undefined>},
    {"upper", 0, text_is<is_upper>},
};

const TestRow* find(std::string_view name) {
  for (const TestRow& row : kRows)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

bool test_exists(std::string_view name) { return find(name) != nullptr; }

Result<bool> Runtime::test(std::string_view name, const Value& self, const Arguments& arguments) {
  const TestRow* row = find(name);
  if (!row) return fail(fmt::format("there is no test {}", in_quotes(name)));
  COPPICE_TRY_STATUS(charge(kStep));
  const std::size_t given = arguments.positional.size() + arguments.named.size();
  if (given != static_cast<std::size_t>(row->operands) || !arguments.named.empty())
    return fail(fmt::format("the test {} takes {} operand{} by place and got {}", name, row->operands,
                            row->operands == 1 ? "" : "s", given));
  return row->run(*this, self, arguments.positional.empty() ? nullptr : &arguments.positional[0]);
}

}  // namespace coppice::core::jinja
