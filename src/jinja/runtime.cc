#include "jinja/runtime.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/unicode.h"

namespace coppice::core::jinja {

Status Arguments::bind(std::string_view what, std::initializer_list<std::string_view> names,
                       const Value** slots) const {
  const auto name_at = [&](std::size_t i) { return *(names.begin() + static_cast<std::ptrdiff_t>(i)); };
  std::fill(slots, slots + names.size(), nullptr);
  if (positional.size() > names.size())
    return fail(fmt::format("{} takes {} argument{} and got {}", what, names.size(),
                            names.size() == 1 ? "" : "s", positional.size()));
  for (std::size_t i = 0; i < positional.size(); ++i) slots[i] = &positional[i];
  for (const auto& [name, value] : named) {
    std::size_t i = 0;
    while (i < names.size() && name_at(i) != name) ++i;
    if (i == names.size()) return fail(fmt::format("{} takes no argument {}", what, name));
    if (slots[i]) return fail(fmt::format("{} got its argument {} twice", what, name));
    slots[i] = &value;
  }
  return {};
}

Value* Namespace::find(std::string_view name) {
  for (auto& [known, value] : attributes)
    if (known == name) return &value;
  return nullptr;
}

std::string Loop::show() const { return fmt::format("<LoopContext {}/{}>", at + 1, items.size()); }

Status Runtime::charge(std::uint64_t units) {
  if (units > limits_.work - work_) {
    work_ = limits_.work;
    return fail("the template makes too much work: it was stopped at the limit of steps and bytes");
  }
  work_ += units;
  return {};
}

Result<Value> Runtime::text(Text text) {
  COPPICE_TRY_STATUS(charge(kStep + text.size() + 16 * text.data().size()));
  return Value(std::move(text));
}

Result<Value> Runtime::list(Sequence::Form form, std::vector<Value> items) {
  COPPICE_TRY_STATUS(charge(kItem * items.size()));
  return make_sequence(form, std::move(items));
}

Result<std::vector<Value>> Runtime::iterate(const Value& value) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (const Sequence* sequence = value.sequence()) {
    COPPICE_TRY_STATUS(charge(kItem * sequence->items.size()));
    items.assign(sequence->items.begin() + static_cast<std::ptrdiff_t>(sequence->taken),
                 sequence->items.end());
    if (sequence->once()) sequence->taken = sequence->items.size();
    return items;
  }
  if (const Dict* dict = value.dict()) {
    COPPICE_TRY_STATUS(charge(kItem * dict->entries.size()));
    for (const auto& entry : dict->entries) items.push_back(entry.first);
    return items;
  }
  const Text* text = value.text();
  if (!text) return fail(fmt::format("{} has no items to go through", type_name(value)));
  COPPICE_TRY_STATUS(charge(128 * text->size()));
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = at + character_at(text->bytes(), at).bytes;
    items.emplace_back(text->slice(at, end));
    at = end;
  }
  return items;
}

Result<Text> Runtime::to_text(const Value& value) {
  COPPICE_TRY_STATUS(charge(value.weight()));
  return jinja::to_text(value);
}

Result<bool> Runtime::contains(const Value& container, const Value& item) {
  if (container.is_undefined()) return false;
  COPPICE_TRY_STATUS(charge(container.weight() + item.weight()));
  if (const Text* text = container.text()) {
    if (!item.text()) {
      return fail(item.is_undefined() ? *item.undefined()->why
                                      : fmt::format("a {} cannot be in a str", type_name(item)));
    }
    return text->bytes().find(item.text()->bytes()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    if (!hashable(item)) return fail(fmt::format("a {} cannot be a dict's key", type_name(item)));
    return dict->find(item) != nullptr;
  }
  if (const Sequence* sequence = container.sequence()) {
    for (std::size_t i = sequence->taken; i < sequence->items.size(); ++i) {
      if (sequence->once()) sequence->taken = i + 1;
      if (equal(sequence->items[i], item)) return true;
    }
    return false;
  }
  return fail(fmt::format("{} has no items to look in", type_name(container)));
}

Result<std::int64_t> Runtime::length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (const Text* text = value.text()) {
    COPPICE_TRY_STATUS(charge(text->size()));
    return static_cast<std::int64_t>(count_characters(text->bytes()));
  }
  if (const Dict* dict = value.dict()) return static_cast<std::int64_t>(dict->entries.size());
  if (const Sequence* sequence = value.sequence(); sequence && !sequence->once())
    return static_cast<std::int64_t>(sequence->items.size());
  if (const Object* object = value.object(); object && object->kind == Object::Kind::loop)
    return static_cast<std::int64_t>(static_cast<const Loop*>(object)->items.size());
  return fail(fmt::format("{} has no length", type_name(value)));
}

Result<Value> Runtime::call(const Value& callee, const Arguments& arguments) {
  if (callee.is_undefined()) return fail(*callee.undefined()->why);
  if (const Method* method = callee.method()) return call_method(*this, *method, arguments);
  const Object* object = callee.object();
  if (object && object->kind == Object::Kind::function) {
    const auto* function = static_cast<const Function*>(object);
    return function->run(*this, arguments);
  }
  if (!object || object->kind != Object::Kind::loop_method)
    return fail(fmt::format("{} cannot be called", type_name(callee)));
  const auto* method = static_cast<const LoopMethod*>(object);
  if (!arguments.named.empty()) return fail("loop's methods take no named arguments");
  const std::vector<Value>& values = arguments.positional;
  if (method->cycle) {
    if (values.empty()) return fail("loop.cycle wants at least one value");
    return values[method->loop->at % values.size()];
  }
  COPPICE_TRY(Value now, list(Sequence::Form::tuple, values));
  COPPICE_TRY_STATUS(charge(now.weight()));
  Loop& loop = *method->loop;
  const bool changed = !loop.changed_before || !equal(loop.last_changed, now);
  loop.changed_before = true;
  loop.last_changed = std::move(now);
  return Value(changed);
}

}  // namespace coppice::core::jinja
