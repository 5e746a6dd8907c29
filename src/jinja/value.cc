#include "jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace coppice::core::jinja {
namespace {

constexpr std::uint64_t kHeaviest = std::uint64_t{1} << 60;

// A sequence or dict that holds `value`.
template <class Container>
void hold(Container& container, const Value& value) {
  container.depth = std::max(container.depth, value.depth() + 1);
  container.weight = std::min(kHeaviest, container.weight + value.weight() + 2);
}

template <class Container>
Result<Value> finish(Container container) {
  if (container.depth > kMaxDepth)
    return fail(fmt::format("lists and dicts nest more than {} deep, which is the limit", kMaxDepth));
  return Value(std::move(container));
}

// -1, 0, 1; 2 if one of them is no number (NaN).
int order(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return 2;
  return a < b ? -1 : a > b ? 1 : 0;
}

// Exactly, as Python compares an int with a float.
int order(std::int64_t a, double b) {
  if (std::isnan(b)) return 2;
  if (b >= 9223372036854775808.0) return -1;
  if (b < -9223372036854775808.0) return 1;
  const double floor = std::floor(b);
  const auto whole = static_cast<std::int64_t>(floor);
  if (a != whole) return a < whole ? -1 : 1;
  return b > floor ? -1 : 0;
}

// Both are numbers: as order().
bool order_numbers(const Value& a, const Value& b, int& result) {
  std::int64_t i = 0, j = 0;
  const bool whole_a = a.to_integer(i), whole_b = b.to_integer(j);
  if (whole_a && whole_b) {
    result = i < j ? -1 : i > j ? 1 : 0;
  } else if (whole_a && b.number()) {
    result = order(i, *b.number());
  } else if (a.number() && whole_b) {
    const int reverse = order(j, *a.number());
    result = reverse == 2 ? 2 : -reverse;
  } else if (a.number() && b.number()) {
    result = order(*a.number(), *b.number());
  } else {
    return false;
  }
  return true;
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = b.find(entry.first);
    return other && equal(entry.second, *other);
  });
}

bool comparable_forms(const Sequence& a, const Sequence& b) {
  return a.form == b.form && (a.form == Sequence::Form::list || a.form == Sequence::Form::tuple);
}

}  // namespace

const Value* Dict::find(const Value& key) const {
  for (const auto& entry : entries)
    if (equal(entry.first, key)) return &entry.second;
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& entry : entries) {
    const Text* text = entry.first.text();
    if (text && text->bytes() == key) return &entry.second;
  }
  return nullptr;
}

Value::Kind Value::kind() const { return static_cast<Kind>(data_.index()); }

const Text* Value::text() const {
  const auto* pointer = std::get_if<TextPtr>(&data_);
  return pointer ? pointer->get() : nullptr;
}

const Sequence* Value::sequence() const {
  const auto* pointer = std::get_if<SequencePtr>(&data_);
  return pointer ? pointer->get() : nullptr;
}

const Dict* Value::dict() const {
  const auto* pointer = std::get_if<DictPtr>(&data_);
  return pointer ? pointer->get() : nullptr;
}

Object* Value::object() const {
  const auto* pointer = std::get_if<Object*>(&data_);
  return pointer ? *pointer : nullptr;
}

bool Value::to_integer(std::int64_t& value) const {
  if (const bool* b = boolean()) return value = *b ? 1 : 0, true;
  if (const std::int64_t* i = integer()) return value = *i, true;
  return false;
}

bool Value::to_number(double& value) const {
  std::int64_t whole = 0;
  if (to_integer(whole)) return value = static_cast<double>(whole), true;
  if (const double* n = number()) return value = *n, true;
  return false;
}

int Value::depth() const {
  if (const Sequence* s = sequence()) return s->depth;
  if (const Dict* d = dict()) return d->depth;
  if (const Method* m = method()) return m->self->depth() + 1;
  return 0;
}

std::uint64_t Value::weight() const {
  if (const Text* t = text()) return t->size() + 1;
  if (const Sequence* s = sequence()) return s->weight;
  if (const Dict* d = dict()) return d->weight;
  if (const Method* m = method()) return m->self->weight();
  return 8;
}

Undefined undefined(std::string why) { return {std::make_shared<const std::string>(std::move(why))}; }

Result<Value> make_sequence(Sequence::Form form, std::vector<Value> items) {
  Sequence sequence;
  sequence.form = form;
  for (const Value& item : items) hold(sequence, item);
  sequence.items = std::move(items);
  return finish(std::move(sequence));
}

Result<Value> make_dict(std::vector<std::pair<Value, Value>> entries) {
  Dict dict;
  for (const auto& [key, value] : entries) {
    hold(dict, key);
    hold(dict, value);
  }
  dict.entries = std::move(entries);
  return finish(std::move(dict));
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return "Undefined";
    case Value::Kind::none:
      return "NoneType";
    case Value::Kind::boolean:
      return "bool";
    case Value::Kind::integer:
      return "int";
    case Value::Kind::number:
      return "float";
    case Value::Kind::text:
      return "str";
    case Value::Kind::dict:
      return "dict";
    case Value::Kind::method:
      return "method";
    case Value::Kind::object:
      break;
    case Value::Kind::sequence: {
      constexpr std::string_view kNames[] = {"list",     "tuple",      "range",     "generator",
                                             "iterator", "dict_items", "dict_keys", "dict_values"};
      return kNames[static_cast<std::size_t>(value.sequence()->form)];
    }
  }
  constexpr std::string_view kObjects[] = {"Namespace", "Macro", "LoopContext", "function", "method"};
  return kObjects[static_cast<std::size_t>(value.object()->kind)];
}

bool hashable(const Value& value) {
  if (value.dict()) return false;
  const Sequence* sequence = value.sequence();
  if (!sequence) return true;
  if (sequence->form == Sequence::Form::list) return false;
  return sequence->form != Sequence::Form::tuple ||
         std::all_of(sequence->items.begin(), sequence->items.end(), hashable);
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
    case Value::Kind::none:
      return false;
    case Value::Kind::boolean:
      return *value.boolean();
    case Value::Kind::integer:
      return *value.integer() != 0;
    case Value::Kind::number:
      return *value.number() != 0;
    case Value::Kind::text:
      return !value.text()->empty();
    case Value::Kind::sequence:
      return value.sequence()->once() || !value.sequence()->items.empty();
    case Value::Kind::dict:
      return !value.dict()->entries.empty();
    case Value::Kind::method:
    case Value::Kind::object:
      break;
  }
  return true;
}

// Values nest at most kMaxDepth deep, and so does this.
bool equal(const Value& a, const Value& b) {
  if (int result = 0; order_numbers(a, b, result)) return result == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::undefined:
    case Value::Kind::none:
      return true;
    case Value::Kind::text:
      return a.text()->bytes() == b.text()->bytes();
    case Value::Kind::dict:
      return a.dict() == b.dict() || equal_dicts(*a.dict(), *b.dict());
    case Value::Kind::method:
      return a.method()->row == b.method()->row && equal(*a.method()->self, *b.method()->self);
    case Value::Kind::object:
      return a.object() == b.object();
    case Value::Kind::sequence:
      break;
    default:
      return false;
  }
  const Sequence &s = *a.sequence(), &t = *b.sequence();
  if (&s == &t) return true;
  const bool by_items = comparable_forms(s, t) || (s.form == t.form && s.form == Sequence::Form::range);
  return by_items && std::equal(s.items.begin(), s.items.end(), t.items.begin(), t.items.end(), equal);
}

Result<int> compare(const Value& a, const Value& b) {
  if (int result = 0; order_numbers(a, b, result)) return result;
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) return fail(*value->undefined()->why);
  if (a.text() && b.text()) {
    const int result = a.text()->bytes().compare(b.text()->bytes());  // UTF-8 orders as code points do
    return result < 0 ? -1 : result > 0 ? 1 : 0;
  }
  if (a.sequence() && b.sequence() && comparable_forms(*a.sequence(), *b.sequence())) {
    const auto &s = a.sequence()->items, &t = b.sequence()->items;
    for (std::size_t i = 0; i < std::min(s.size(), t.size()); ++i)
      if (!equal(s[i], t[i])) return compare(s[i], t[i]);
    return s.size() < t.size() ? -1 : s.size() > t.size() ? 1 : 0;
  }
  return fail(fmt::format("{} and {} have no order", type_name(a), type_name(b)));
}

}  // namespace coppice::core::jinja
