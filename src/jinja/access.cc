// value.name, value[key] and value[start:stop:step]. As in jinja2's sandbox, what is not there is Undefined,
// a method that would change its value is not there, and a name is looked for as an attribute, then as a key
// (a key, then as an attribute, in brackets).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "jinja/methods.h"
#include "jinja/print.h"
#include "jinja/python_text.h"
#include "jinja/runtime.h"

namespace coppice::core::jinja {
namespace {

Value missing(const Value& value, std::string_view name) {
  return undefined(fmt::format("a {} has no attribute {}", type_name(value), in_quotes(name)));
}

Value missing(const Value& value, const Value& key) {
  if (key.text()) return missing(value, key.text()->bytes());
  std::string shown = key.weight() < 100 ? to_repr(key).bytes() : std::string(type_name(key));
  return undefined(fmt::format("a {} has no element {}", type_name(value), shown));
}

Result<Value> loop_attribute(Runtime& runtime, Loop& loop, std::string_view name, const Value& self) {
  const auto index = static_cast<std::int64_t>(loop.at), size = static_cast<std::int64_t>(loop.items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(size - index);
  if (name == "revindex0") return Value(size - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(std::int64_t{loop.depth});
  if (name == "depth0") return Value(std::int64_t{loop.depth - 1});
  if (name == "previtem")
    return index > 0 ? loop.items[loop.at - 1] : Value(undefined("there is no previous item"));
  if (name == "nextitem")
    return index + 1 < size ? loop.items[loop.at + 1] : Value(undefined("there is no next item"));
  if (name == "cycle" || name == "changed") {
    COPPICE_TRY(LoopMethod * method, runtime.make<LoopMethod>(&loop, name == "cycle"));
    return Value(method);
  }
  return missing(self, name);
}

// An attribute that is no key; Undefined if there is none.
Result<Value> own_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (name.substr(0, 1) == "_") return missing(value, name);
  if (Object* object = value.object()) {
    if (object->kind == Object::Kind::loop)
      return loop_attribute(runtime, static_cast<Loop&>(*object), name, value);
    if (object->kind == Object::Kind::space) {
      const Value* found = static_cast<Namespace*>(object)->find(name);
      return found ? *found : missing(value, name);
    }
    return missing(value, name);
  }
  const MethodRow* row = find_method(value, name);
  if (!row) return missing(value, name);
  if (!row->run)
    return Value(
        undefined(fmt::format("{} would change a {}, which a template may not", name, type_name(value))));
  return Value(Method{std::make_shared<const Value>(value), row});
}

std::int64_t size_of(const Value& value) {
  if (value.text()) return static_cast<std::int64_t>(count_characters(value.text()->bytes()));
  return static_cast<std::int64_t>(value.sequence()->items.size());
}

bool has_places(const Value& value) {
  return value.text() || (value.sequence() && value.sequence()->form <= Sequence::Form::range);
}

// As Python's slice.indices: the first place, and how many there are.
struct Places {
  std::int64_t start, stop, count, step;
};

Result<Places> places(std::int64_t size, const Value& from, const Value& to, const Value& by) {
  std::int64_t step = 1, start = 0, stop = 0;
  for (const Value* value : {&from, &to, &by}) {
    if (std::int64_t i = 0; !value->is_none() && !value->to_integer(i))
      return fail(fmt::format("a slice's ends are whole numbers, not a {}", type_name(*value)));
  }
  if (!by.is_none()) by.to_integer(step);
  if (step == 0) return fail("a slice's step cannot be 0");
  const std::int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? size - 1 : size;
  const auto place = [&](const Value& value, std::int64_t otherwise) {
    std::int64_t index = 0;
    if (value.is_none()) return otherwise;
    value.to_integer(index);
    if (index < 0) index = index < -size ? lowest : index + size;
    return std::clamp(index, lowest, highest);
  };
  start = place(from, step < 0 ? highest : lowest);
  stop = place(to, step < 0 ? lowest : highest);
  std::int64_t count = 0;
  if (step > 0 && start < stop) count = (stop - start - 1) / step + 1;
  if (step < 0 && stop < start) count = step < -size ? 1 : (start - stop - 1) / -step + 1;
  return Places{start, stop, count, step};
}

}  // namespace

Result<Value> Runtime::attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) return fail(*value.undefined()->why);
  COPPICE_TRY(Value found, own_attribute(*this, value, name));
  const Dict* dict = value.dict();
  if (!found.is_undefined() || !dict) return found;
  COPPICE_TRY_STATUS(charge(2 * dict->entries.size()));
  const Value* entry = find_method(value, name) ? nullptr : dict->find(name);
  return entry ? *entry : found;
}

Result<Value> Runtime::item(const Value& value, const Value& key) {
  if (value.is_undefined()) return fail(*value.undefined()->why);
  if (const Dict* dict = value.dict(); dict && hashable(key)) {
    COPPICE_TRY_STATUS(charge(2 * dict->entries.size() + key.weight()));
    if (const Value* found = dict->find(key)) return *found;
  }
  if (std::int64_t index = 0; has_places(value) && key.to_integer(index)) {
    if (value.text()) COPPICE_TRY_STATUS(charge(value.text()->size()));
    const std::int64_t size = size_of(value);
    if (index < 0) index += size;
    if (index < 0 || index >= size) return missing(value, key);
    if (value.text()) return Value(slice_characters(*value.text(), index, 1, 1));
    return value.sequence()->items[static_cast<std::size_t>(index)];
  }
  if (key.text()) return own_attribute(*this, value, key.text()->bytes());
  return missing(value, key);
}

Result<Value> Runtime::slice(const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (value.is_undefined()) return fail(*value.undefined()->why);
  if (!has_places(value)) return fail(fmt::format("a {} cannot be sliced", type_name(value)));
  if (value.text()) COPPICE_TRY_STATUS(charge(16 * value.text()->size()));
  COPPICE_TRY(const Places at, places(size_of(value), start, stop, step));
  if (value.text()) return text(slice_characters(*value.text(), at.start, at.count, at.step));
  const Sequence& sequence = *value.sequence();
  std::vector<Value> items;
  for (std::int64_t i = 0; i < at.count; ++i)
    items.push_back(sequence.items[static_cast<std::size_t>(at.start + i * at.step)]);
  if (sequence.form != Sequence::Form::range) return list(sequence.form, std::move(items));
  COPPICE_TRY_STATUS(charge(kItem * items.size()));
  const auto number_at = [&](std::int64_t place) {  // wraps where no number of the range is
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(sequence.start) +
                                     static_cast<std::uint64_t>(place) *
                                         static_cast<std::uint64_t>(sequence.step));
  };
  Sequence part;
  part.form = Sequence::Form::range;
  part.start = number_at(at.start);
  part.stop = number_at(at.stop);
  part.step = static_cast<std::int64_t>(static_cast<std::uint64_t>(sequence.step) *
                                        static_cast<std::uint64_t>(at.step));
  part.weight += 8 * items.size();
  part.items = std::move(items);
  return Value(std::move(part));
}

}  // namespace coppice::core::jinja
