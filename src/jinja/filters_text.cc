#include <fmt/format.h>

#include <optional>

#include "base/check.h"
#include "jinja/filters.h"
#include "jinja/print.h"
#include "jinja/python_text.h"

namespace coppice::core::jinja {
namespace {

template <Case wanted>
Result<Value> in_case(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("upper, lower", {}, nullptr));
  COPPICE_TRY(const Text text, runtime.to_text(self));
  COPPICE_TRY_STATUS(runtime.charge(16 * text.size()));
  return runtime.text(change_case(text, wanted));
}

template <Text (*change)(const Text&)>
Result<Value> changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("this filter", {}, nullptr));
  COPPICE_TRY(const Text text, runtime.to_text(self));
  COPPICE_TRY_STATUS(runtime.charge(16 * text.size()));
  return runtime.text(change(text));
}

Result<Value> trim(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slot = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("trim", {"chars"}, &slot));
  std::optional<Text> characters;
  if (slot && !slot->is_none()) {
    if (!slot->text()) return fail(fmt::format("trim wants a str, not a {}", type_name(*slot)));
    characters = *slot->text();
  }
  COPPICE_TRY(const Text text, runtime.to_text(self));
  COPPICE_TRY_STATUS(runtime.charge(text.size() * (characters ? characters->size() : 1)));
  return runtime.text(strip(text, characters, Side::both));
}

// As str's method, but everything is made text first, and the result is no markup.
Result<Value> replace_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[3];
  COPPICE_TRY_STATUS(arguments.bind("replace", {"old", "new", "count"}, slots));
  if (!slots[0] || !slots[1]) return fail("replace wants what to replace and what with");
  Arguments texts;
  for (int i = 0; i < 2; ++i) {
    COPPICE_TRY(Text text, runtime.to_text(*slots[i]));
    text.markup = false;
    texts.positional.emplace_back(std::move(text));
  }
  if (slots[2] && !slots[2]->is_none()) texts.positional.push_back(*slots[2]);
  COPPICE_TRY(Text text, runtime.to_text(self));
  text.markup = false;
  const Value whole{std::move(text)};
  return call_method(runtime, Method{std::make_shared<const Value>(whole), find_method(whole, "replace")},
                     texts);
}

Result<Value> string(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("string", {}, nullptr));
  COPPICE_TRY(Text text, runtime.to_text(self));
  return runtime.text(std::move(text));
}

Result<Value> safe(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("safe", {}, nullptr));
  COPPICE_TRY(Text text, runtime.to_text(self));
  text.markup = true;
  return runtime.text(std::move(text));
}

template <bool always>
Result<Value> escape(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("escape", {}, nullptr));
  COPPICE_TRY(Text text, runtime.to_text(self));
  COPPICE_TRY_STATUS(runtime.charge(8 * text.size()));
  return runtime.text(text.markup && !always ? std::move(text) : escape_html(text));
}

Result<Value> indent(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[3];
  COPPICE_TRY_STATUS(arguments.bind("indent", {"width", "first", "blank"}, slots));
  if (!self.text())
    return fail(self.is_undefined() ? *self.undefined()->why
                                    : fmt::format("indent wants a str, not a {}", type_name(self)));
  Text indention("    ");
  if (slots[0] && slots[0]->text()) {
    indention = *slots[0]->text();
  } else if (slots[0]) {
    COPPICE_TRY(const std::int64_t width, whole_or(slots[0], 4, "indent"));
    COPPICE_TRY_STATUS(runtime.charge(static_cast<std::uint64_t>(std::max<std::int64_t>(width, 0))));
    indention = Text(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
  }
  const bool first = flag(slots[1], false), blank = flag(slots[2], false);
  Text whole = *self.text();
  whole.append("\n");
  const std::vector<Text> lines = split_lines(whole, false);
  COPPICE_TRY_STATUS(runtime.charge(whole.size() + lines.size() * 64));
  Text out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    const bool indents = i == 0 ? first : blank || !lines[i].empty();
    if (indents) {
      COPPICE_TRY_STATUS(runtime.charge(indention.size()));
      out.append(indention);
    }
    out.append(lines[i]);
  }
  out.markup = self.text()->markup;
  return runtime.text(std::move(out));
}

Result<Value> format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    return fail("format takes values by place or by name, not both");
  COPPICE_TRY(const Text text, runtime.to_text(self));
  if (arguments.named.empty()) {
    COPPICE_TRY(const Value values, runtime.list(Sequence::Form::tuple, arguments.positional));
    return percent_format(runtime, text, values);
  }
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : arguments.named) entries.emplace_back(Value(name), value);
  COPPICE_TRY(const Value values, make_dict(std::move(entries)));
  return percent_format(runtime, text, values);
}

// transformers' own, which is json.dumps without jinja2's escaping for HTML.
Result<Value> tojson(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[4];
  COPPICE_TRY_STATUS(arguments.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, slots));
  JsonStyle style;
  style.ensure_ascii = flag(slots[0], false);
  style.sort_keys = flag(slots[3], false);
  if (slots[1] && !slots[1]->is_none()) {
    style.lines = true;
    style.item_separator = Text(",");
    if (slots[1]->text()) {
      style.indent = *slots[1]->text();
    } else {
      constexpr std::int64_t kWidest = 100;
      COPPICE_TRY(const std::int64_t width, whole_or(slots[1], 0, "tojson's indent"));
      if (width > kWidest) return fail(fmt::format("tojson's indent is at most {}", kWidest));
      style.indent = Text(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
    }
  }
  if (slots[2] && !slots[2]->is_none()) {
    const Sequence* two = slots[2]->sequence();
    if (!two || two->items.size() != 2 || !two->items[0].text() || !two->items[1].text())
      return fail("tojson's separators are two texts: between items, and behind a key");
    style.item_separator = *two->items[0].text();
    style.key_separator = *two->items[1].text();
  }
  // What weighs 1 is written as at most 6 bytes, and each item may have its line.
  const std::uint64_t line =
      8 + (style.lines ? style.indent.size() * static_cast<std::uint64_t>(self.depth()) : 0);
  COPPICE_TRY_STATUS(
      runtime.charge(std::min(self.weight(), runtime.limits().work) *
                     (1 + (style.item_separator.size() + style.key_separator.size() + line) / 8)));
  COPPICE_TRY(Text text, to_json(self, style));
  return runtime.text(std::move(text));
}

constexpr FilterRow kRows[] = {
    {"capitalize", changed<capitalize>},
    {"e", escape<false>},
    {"escape", escape<false>},
    {"forceescape", escape<true>},
    {"format", format},
    {"indent", indent},
    {"lower", in_case<Case::lower>},
    {"replace", replace_filter},
    {"safe", safe},
    {"string", string},
    {"title", changed<title_filter>},
    {"tojson", tojson},
    {"trim", trim},
    {"upper", in_case<Case::upper>},
};

}  // namespace

std::span<const FilterRow> text_filters() { return kRows; }

}  // namespace coppice::core::jinja
