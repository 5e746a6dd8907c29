#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "jinja/filters.h"
#include "jinja/print.h"
#include "jinja/python_text.h"

namespace coppice::core::jinja {
namespace {

using Form = Sequence::Form;

// "a.b.0" of an item, as the filters' `attribute` means it; the whole item for none.
class Getter {
 public:
  explicit Getter(const Value* attribute, const Value* otherwise = nullptr) : otherwise_(otherwise) {
    if (!attribute || attribute->is_none()) return;
    if (!attribute->text()) {
      parts_.push_back(*attribute);
      return;
    }
    for (const Text& part : split(*attribute->text(), Text("."), -1, false)) {
      const std::string& bytes = part.bytes();
      std::int64_t place = 0;
      const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), place);
      const bool is_place = error == std::errc() && end == bytes.data() + bytes.size() && bytes[0] != '-';
      parts_.push_back(is_place ? Value(place) : Value(part));
    }
  }

  Result<Value> operator()(Runtime& runtime, Value item) const {
    for (const Value& part : parts_) {
      COPPICE_TRY_STATUS(runtime.charge(kStep));
      COPPICE_TRY(item, runtime.item(item, part));
      if (item.is_undefined() && otherwise_ && !otherwise_->is_none()) item = *otherwise_;
    }
    return item;
  }

 private:
  const Value* otherwise_;
  std::vector<Value> parts_;
};

Result<Value> folded(Runtime& runtime, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.text()) return value;
  COPPICE_TRY_STATUS(runtime.charge(16 * value.text()->size()));
  return Value(change_case(*value.text(), Case::lower));
}

// a < b as Python's sort asks it: equal things need no order.
Result<bool> before(const Value& a, const Value& b) {
  if (equal(a, b)) return false;
  COPPICE_TRY(const int order, compare(a, b));
  return order == -1;
}

struct Keyed {
  Value key, item;
};

Result<std::vector<Value>> sorted(Runtime& runtime, std::vector<Keyed> items, bool reverse) {
  std::uint64_t weight = 0, levels = 1;
  for (const Keyed& keyed : items) weight += std::min(keyed.key.weight(), runtime.limits().work);
  for (std::size_t n = items.size(); n > 1; n /= 2) ++levels;
  COPPICE_TRY_STATUS(runtime.charge(std::min(weight, runtime.limits().work) * levels));
  Status status;
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    const auto less = reverse ? before(b.key, a.key) : before(a.key, b.key);
    if (!less && status) status = fail(less.error().message);
    return less && *less;
  });
  COPPICE_TRY_STATUS(status);
  std::vector<Value> out;
  for (Keyed& keyed : items) out.push_back(std::move(keyed.item));
  return out;
}

Result<Value> sort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[3];
  COPPICE_TRY_STATUS(arguments.bind("sort", {"reverse", "case_sensitive", "attribute"}, slots));
  std::vector<Value> names = {Value()};
  if (slots[2] && slots[2]->text()) {
    names.clear();
    for (Text& name : split(*slots[2]->text(), Text(","), -1, false)) names.emplace_back(std::move(name));
  } else if (slots[2]) {
    names = {*slots[2]};
  }
  std::vector<Getter> getters;
  for (const Value& name : names) getters.emplace_back(&name);
  COPPICE_TRY(const std::vector<Value> items, runtime.iterate(self));
  std::vector<Keyed> keyed;
  for (const Value& item : items) {
    std::vector<Value> keys;
    for (const Getter& get : getters) {
      COPPICE_TRY(const Value value, get(runtime, item));
      COPPICE_TRY(keys.emplace_back(), folded(runtime, value, flag(slots[1], false)));
    }
    COPPICE_TRY(Value key, runtime.list(Form::list, std::move(keys)));
    keyed.push_back({std::move(key), item});
  }
  COPPICE_TRY(std::vector<Value> out, sorted(runtime, std::move(keyed), flag(slots[0], false)));
  return runtime.list(Form::list, std::move(out));
}

Result<Value> dictsort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[3];
  COPPICE_TRY_STATUS(arguments.bind("dictsort", {"case_sensitive", "by", "reverse"}, slots));
  const std::string by = slots[1] && slots[1]->text() ? slots[1]->text()->bytes() : slots[1] ? "" : "key";
  if (by != "key" && by != "value") return fail("dictsort sorts by \"key\" or \"value\"");
  if (!self.dict())
    return fail(self.is_undefined() ? *self.undefined()->why
                                    : fmt::format("dictsort wants a dict, not a {}", type_name(self)));
  std::vector<Keyed> keyed;
  for (const auto& [name, value] : self.dict()->entries) {
    COPPICE_TRY(Value key, folded(runtime, by == "key" ? name : value, flag(slots[0], false)));
    COPPICE_TRY_STATUS(runtime.charge(kStep));
    COPPICE_TRY(Value pair, make_sequence(Form::tuple, {name, value}));
    keyed.push_back({std::move(key), std::move(pair)});
  }
  COPPICE_TRY(std::vector<Value> out, sorted(runtime, std::move(keyed), flag(slots[2], false)));
  return runtime.list(Form::list, std::move(out));
}

Result<Value> unique(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("unique", {"case_sensitive", "attribute"}, slots));
  const Getter get(slots[1]);
  COPPICE_TRY(const std::vector<Value> items, runtime.iterate(self));
  std::vector<Value> keys, out;
  for (const Value& item : items) {
    COPPICE_TRY(const Value found, get(runtime, item));
    COPPICE_TRY(Value key, folded(runtime, found, flag(slots[0], false)));
    if (!hashable(key)) return fail(fmt::format("unique cannot tell a {} from others", type_name(key)));
    COPPICE_TRY_STATUS(runtime.charge(4 * keys.size() + key.weight()));
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& known) { return equal(known, key); }))
      continue;
    keys.push_back(std::move(key));
    out.push_back(item);
  }
  return runtime.list(Form::generator, std::move(out));
}

template <bool largest>
Result<Value> extreme(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("min, max", {"case_sensitive", "attribute"}, slots));
  const Getter get(slots[1]);
  COPPICE_TRY(const std::vector<Value> items, runtime.iterate(self));
  if (items.empty()) return Value(undefined("there is no smallest or largest of no items"));
  std::size_t best = 0;
  Value best_key;
  for (std::size_t i = 0; i < items.size(); ++i) {
    COPPICE_TRY(const Value found, get(runtime, items[i]));
    COPPICE_TRY(Value key, folded(runtime, found, flag(slots[0], false)));
    COPPICE_TRY_STATUS(runtime.charge(key.weight()));
    if (i > 0) {
      COPPICE_TRY(const int order, compare(key, best_key));
      if (order != (largest ? 1 : -1)) continue;
    }
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

Result<Value> join_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("join", {"d", "attribute"}, slots));
  Text separator;
  if (slots[0]) {
    COPPICE_TRY(separator, runtime.to_text(*slots[0]));
  }
  const Getter get(slots[1]);
  COPPICE_TRY(const std::vector<Value> items, runtime.iterate(self));
  Text out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    COPPICE_TRY(const Value item, get(runtime, items[i]));
    COPPICE_TRY(const Text text, runtime.to_text(item));
    COPPICE_TRY_STATUS(runtime.charge(text.size() + separator.size()));
    if (i > 0) out.append(separator);
    out.append(text);
  }
  return runtime.text(std::move(out));
}

Result<Value> first(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("first", {}, nullptr));
  const Value none(undefined("there is no first of no items"));
  if (const Sequence* sequence = self.sequence()) {
    if (sequence->taken >= sequence->items.size()) return none;
    return sequence->items[sequence->once() ? sequence->taken++ : 0];
  }
  COPPICE_TRY(const std::vector<Value> items, runtime.iterate(self));
  return items.empty() ? none : items.front();
}

Result<Value> last(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("last", {}, nullptr));
  if (self.sequence() && self.sequence()->once())
    return fail(fmt::format("a {} has no last item: make it a list first", type_name(self)));
  COPPICE_TRY(const std::vector<Value> items, runtime.iterate(self));
  return items.empty() ? Value(undefined("there is no last of no items")) : items.back();
}

Result<Value> list(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("list", {}, nullptr));
  COPPICE_TRY(std::vector<Value> items, runtime.iterate(self));
  return runtime.list(Form::list, std::move(items));
}

Result<Value> length(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("length", {}, nullptr));
  COPPICE_TRY(const std::int64_t size, runtime.length(self));
  return Value(size);
}

Result<Value> items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("items", {}, nullptr));
  std::vector<Value> pairs;
  if (!self.is_undefined() && !self.dict())
    return fail(fmt::format("items wants a dict, not a {}", type_name(self)));
  if (const Dict* dict = self.dict()) {
    for (const auto& [key, value] : dict->entries) {
      COPPICE_TRY_STATUS(runtime.charge(kStep));
      COPPICE_TRY(pairs.emplace_back(), make_sequence(Form::tuple, {key, value}));
    }
  }
  return runtime.list(Form::generator, std::move(pairs));
}

Result<Value> reverse(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("reverse", {}, nullptr));
  if (const Text* text = self.text()) {
    COPPICE_TRY_STATUS(runtime.charge(32 * text->size()));
    const auto count = static_cast<std::int64_t>(count_characters(text->bytes()));
    return runtime.text(slice_characters(*text, count - 1, count, -1));
  }
  COPPICE_TRY(std::vector<Value> items, runtime.iterate(self));
  std::reverse(items.begin(), items.end());
  return runtime.list(self.sequence() && self.sequence()->once() ? Form::list : Form::iterator,
                      std::move(items));
}

Result<Value> default_value(Runtime&, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("default", {"default_value", "boolean"}, slots));
  const bool replaced = self.is_undefined() || (flag(slots[1], false) && !truth(self));
  return !replaced ? self : slots[0] ? *slots[0] : Value("");
}

// map(attribute="name", default=...) or map("filter", its arguments).
Result<Value> map(Runtime& runtime, const Value& self, const Arguments& arguments) {
  std::vector<Value> mapped;
  if (!truth(self)) return runtime.list(Form::generator, std::move(mapped));
  const Value* slots[2] = {nullptr, nullptr};
  const Text* filter = nullptr;
  Arguments rest;
  if (arguments.positional.empty()) {
    COPPICE_TRY_STATUS(arguments.bind("map", {"attribute", "default"}, slots));
    if (!slots[0]) return fail("map wants a filter's name or attribute=");
  } else {
    filter = arguments.positional[0].text();
    if (!filter) return fail("the name of a filter is a str");
    rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
    rest.named = arguments.named;
  }
  const Getter get(slots[0], slots[1]);
  COPPICE_TRY(const std::vector<Value> all, runtime.iterate(self));
  for (const Value& item : all) {
    COPPICE_TRY_STATUS(runtime.charge(kStep));
    COPPICE_TRY(mapped.emplace_back(),
                filter ? runtime.filter(filter->bytes(), item, rest) : get(runtime, item));
  }
  return runtime.list(Form::generator, std::move(mapped));
}

// select, reject, selectattr, rejectattr.
template <bool wanted, bool of_attribute>
Result<Value> choose(Runtime& runtime, const Value& self, const Arguments& arguments) {
  std::vector<Value> chosen;
  if (!truth(self)) return runtime.list(Form::generator, std::move(chosen));
  const std::vector<Value>& given = arguments.positional;
  constexpr std::size_t kTest = of_attribute ? 1 : 0;
  if (of_attribute && given.empty()) return fail("selectattr and rejectattr want an attribute's name");
  const Getter get(of_attribute ? &given[0] : nullptr);
  const Text* test = given.size() > kTest ? given[kTest].text() : nullptr;
  if (given.size() > kTest && !test) return fail("the name of a test is a str");
  Arguments rest;
  if (test) {
    rest.positional.assign(given.begin() + kTest + 1, given.end());
    rest.named = arguments.named;
  }
  COPPICE_TRY(const std::vector<Value> all, runtime.iterate(self));
  for (const Value& item : all) {
    COPPICE_TRY_STATUS(runtime.charge(kStep));
    COPPICE_TRY(const Value value, get(runtime, item));
    bool holds = truth(value);
    if (test) {
      COPPICE_TRY(holds, runtime.test(test->bytes(), value, rest));
    }
    if (holds == wanted) chosen.push_back(item);
  }
  return runtime.list(Form::generator, std::move(chosen));
}

constexpr FilterRow kRows[] = {
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", dictsort},
    {"first", first},
    {"items", items},
    {"join", join_filter},
    {"last", last},
    {"length", length},
    {"list", list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", choose<false, false>},
    {"rejectattr", choose<false, true>},
    {"reverse", reverse},
    {"select", choose<true, false>},
    {"selectattr", choose<true, true>},
    {"sort", sort},
    {"unique", unique},
};

}  // namespace

std::span<const FilterRow> item_filters() { return kRows; }

}  // namespace coppice::core::jinja
