#include "jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/python_text.h"

namespace coppice::core::jinja {
namespace {

using Form = Sequence::Form;

Result<std::optional<std::int64_t>> whole(const Value* value, std::string_view what) {
  std::int64_t number = 0;
  if (!value || value->is_none()) return std::optional<std::int64_t>();
  if (!value->to_integer(number))
    return fail(fmt::format("{} wants a whole number, not a {}", what, type_name(*value)));
  return std::optional<std::int64_t>(number);
}

Result<std::optional<Text>> text_or_none(const Value* value, std::string_view what) {
  if (!value || value->is_none()) return std::optional<Text>();
  if (!value->text()) return fail(fmt::format("{} wants a str, not a {}", what, type_name(*value)));
  return std::optional<Text>(*value->text());
}

Result<Text> text_of(const Value* value, std::string_view what) {
  if (!value || !value->text())
    return fail(
        fmt::format("{} wants a str{}", what, value ? fmt::format(", not a {}", type_name(*value)) : ""));
  return *value->text();
}

Status nothing(const Arguments& arguments, std::string_view what) {
  return arguments.bind(what, {}, nullptr);
}

// -- str
// -------------------------------------------------------------------------------------------------------------

template <Side side>
Result<Value> strip_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* characters = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("strip", {"/chars"}, &characters));
  COPPICE_TRY(const std::optional<Text> set, text_or_none(characters, "strip"));
  COPPICE_TRY_STATUS(runtime.charge(self.text()->size() * (set ? set->size() : 1)));
  return runtime.text(strip(*self.text(), set, side));
}

Result<Value> list_of(Runtime& runtime, std::vector<Text> parts, Form form = Form::list) {
  std::vector<Value> items;
  for (Text& part : parts) {
    COPPICE_TRY(items.emplace_back(), runtime.text(std::move(part)));
    COPPICE_TRY_STATUS(runtime.charge(64));
  }
  return runtime.list(form, std::move(items));
}

template <bool from_right>
Result<Value> split_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("split", {"sep", "maxsplit"}, slots));
  COPPICE_TRY(const std::optional<Text> separator, text_or_none(slots[0], "split"));
  if (separator && separator->empty()) return fail("split wants a separator that is not empty");
  if (slots[1] && slots[1]->is_none()) return fail("split wants a whole number as maxsplit, not None");
  COPPICE_TRY(const std::optional<std::int64_t> most, whole(slots[1], "split"));
  return list_of(runtime, split(*self.text(), separator, most.value_or(-1), from_right));
}

Result<Value> splitlines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* keep = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("splitlines", {"keepends"}, &keep));
  return list_of(runtime, split_lines(*self.text(), keep && truth(*keep)));
}

template <bool from_right>
Result<Value> partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slot = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("partition", {"/sep"}, &slot));
  COPPICE_TRY(const Text cut, text_of(slot, "partition"));
  if (cut.empty()) return fail("partition wants a separator that is not empty");
  const Text& text = *self.text();
  const std::size_t at = from_right ? text.bytes().rfind(cut.bytes()) : text.bytes().find(cut.bytes());
  std::vector<Text> parts;
  if (at == std::string::npos) {
    parts = {text, Text(), Text()};
    if (from_right) std::swap(parts[0], parts[2]);
  } else {
    parts = {text.slice(0, at), cut, text.slice(at + cut.size(), text.size())};
  }
  return list_of(runtime, std::move(parts), Form::tuple);
}

Result<Value> replace_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[3];
  COPPICE_TRY_STATUS(arguments.bind("replace", {"/old", "/new", "/count"}, slots));
  COPPICE_TRY(const Text old, text_of(slots[0], "replace"));
  COPPICE_TRY(const Text with, text_of(slots[1], "replace"));
  COPPICE_TRY(const std::optional<std::int64_t> most, whole(slots[2], "replace"));
  // At most so many are replaced.
  const std::uint64_t places = self.text()->size() / std::max<std::size_t>(old.size(), 1) + 1;
  if (!with.empty() && places > runtime.limits().work / with.size()) {
    COPPICE_TRY_STATUS(runtime.charge(runtime.limits().work));
  }
  COPPICE_TRY_STATUS(runtime.charge(self.text()->size()));
  std::uint64_t found = old.empty() ? places : 0;
  for (std::size_t at = 0;
       !old.empty() && (at = self.text()->bytes().find(old.bytes(), at)) != std::string::npos;
       at += old.size())
    ++found;
  COPPICE_TRY_STATUS(runtime.charge(found * (with.size() + 16)));
  return runtime.text(replace(*self.text(), old, with, most.value_or(-1)));
}

template <Case wanted>
Result<Value> in_case(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(nothing(arguments, "upper, lower"));
  COPPICE_TRY_STATUS(runtime.charge(16 * self.text()->size()));
  return runtime.text(change_case(*self.text(), wanted));
}

template <Text (*change)(const Text&)>
Result<Value> changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(nothing(arguments, "this method of str"));
  COPPICE_TRY_STATUS(runtime.charge(16 * self.text()->size()));
  return runtime.text(change(*self.text()));
}

template <bool (*is)(std::string_view)>
Result<Value> is_so(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(nothing(arguments, "this method of str"));
  COPPICE_TRY_STATUS(runtime.charge(16 * self.text()->size()));
  return Value(is(self.text()->bytes()));
}

template <std::uint16_t flags>
bool all_have(std::string_view text) {
  return all_flags(text, flags);
}
bool is_printable(std::string_view text) { return text.empty() || all_flags(text, kPrintable); }
bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

struct Search {
  std::vector<Text> wanted;
  Window window;
};

Result<Search> search(Runtime& runtime, const Value& self, const Arguments& arguments, std::string_view what,
                      bool tuples) {
  const Value* slots[3];
  COPPICE_TRY_STATUS(arguments.bind(what, {"/sub", "/start", "/end"}, slots));
  Search search;
  const Sequence* several = slots[0] ? slots[0]->sequence() : nullptr;
  if (tuples && several && several->form == Form::tuple) {
    for (const Value& one : several->items) {
      COPPICE_TRY(search.wanted.emplace_back(), text_of(&one, what));
    }
  } else {
    COPPICE_TRY(search.wanted.emplace_back(), text_of(slots[0], what));
  }
  COPPICE_TRY(const auto start, whole(slots[1], what));
  COPPICE_TRY(const auto stop, whole(slots[2], what));
  COPPICE_TRY_STATUS(runtime.charge(4 * self.text()->size()));
  search.window = window(self.text()->bytes(), start, stop);
  return search;
}

template <bool at_end>
Result<Value> has_edge(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY(const Search what, search(runtime, self, arguments, at_end ? "endswith" : "startswith", true));
  const std::string_view part =
      std::string_view(self.text()->bytes()).substr(what.window.begin, what.window.end - what.window.begin);
  return Value(what.window.possible &&
               std::any_of(what.wanted.begin(), what.wanted.end(), [&](const Text& t) {
                 return at_end ? part.ends_with(t.bytes()) : part.starts_with(t.bytes());
               }));
}

template <bool last, bool must>
Result<Value> find_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY(const Search what, search(runtime, self, arguments, "find", false));
  const std::string_view part =
      std::string_view(self.text()->bytes()).substr(what.window.begin, what.window.end - what.window.begin);
  const std::string& wanted = what.wanted[0].bytes();
  const std::size_t at = !what.window.possible ? std::string_view::npos
                         : last                ? part.rfind(wanted)
                                               : part.find(wanted);
  if (at == std::string_view::npos) {
    if (must) return fail(fmt::format("the str has no {}", in_quotes(wanted)));
    return Value(std::int64_t{-1});
  }
  return Value(what.window.first + static_cast<std::int64_t>(count_characters(part.substr(0, at))));
}

Result<Value> count_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY(const Search what, search(runtime, self, arguments, "count", false));
  if (!what.window.possible) return Value(std::int64_t{0});
  const std::string_view part =
      std::string_view(self.text()->bytes()).substr(what.window.begin, what.window.end - what.window.begin);
  const std::string& wanted = what.wanted[0].bytes();
  if (wanted.empty()) return Value(static_cast<std::int64_t>(count_characters(part)) + 1);
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = part.find(wanted, at)) != std::string_view::npos; at += wanted.size())
    ++count;
  return Value(count);
}

template <bool suffix>
Result<Value> remove_edge(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slot = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("removeprefix, removesuffix", {"/text"}, &slot));
  COPPICE_TRY(const Text edge, text_of(slot, "removeprefix, removesuffix"));
  const Text& text = *self.text();
  const std::size_t size = text.size(), cut = edge.size();
  if (suffix) return runtime.text(text.slice(0, text.bytes().ends_with(edge.bytes()) ? size - cut : size));
  return runtime.text(text.slice(text.bytes().starts_with(edge.bytes()) ? cut : 0, size));
}

Result<Value> join_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slot = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("join", {"/items"}, &slot));
  if (!slot) return fail("join wants the items to join");
  COPPICE_TRY(const std::vector<Value> items, runtime.iterate(*slot));
  std::vector<Text> parts;
  for (const Value& item : items) {
    COPPICE_TRY(parts.emplace_back(), text_of(&item, "join"));
    COPPICE_TRY_STATUS(runtime.charge(parts.back().size() + self.text()->size()));
  }
  return Value(join(*self.text(), parts));
}

// ljust, rjust, center and zfill: -1 left, 1 right, 0 center.
Result<Value> padded(Runtime& runtime, const Text& text, const Arguments& arguments, int side) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("ljust, rjust, center", {"/width", "/fillchar"}, slots));
  if (!slots[0]) return fail("ljust, rjust and center want a width");
  COPPICE_TRY(const std::optional<std::int64_t> width, whole(slots[0], "ljust, rjust, center"));
  Text fill(" ");
  if (slots[1]) {
    COPPICE_TRY(fill, text_of(slots[1], "ljust, rjust, center"));
  }
  if (count_characters(fill.bytes()) != 1)
    return fail("ljust, rjust and center want one character to fill with");
  const auto size = static_cast<std::int64_t>(count_characters(text.bytes()));
  const std::int64_t missing = std::max<std::int64_t>(width.value_or(0) - size, 0);
  COPPICE_TRY_STATUS(runtime.charge(static_cast<std::uint64_t>(missing)));
  COPPICE_TRY_STATUS(runtime.charge(static_cast<std::uint64_t>(missing) * 4));
  // Python puts the odd one to the left if the width is odd.
  const std::int64_t left = side < 0   ? 0
                            : side > 0 ? missing
                                       : missing / 2 + (missing & width.value_or(0) & 1);
  Text out;
  for (std::int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(text);
  for (std::int64_t i = left; i < missing; ++i) out.append(fill);
  return runtime.text(std::move(out));
}

template <int side>
Result<Value> justify(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return padded(runtime, *self.text(), arguments, side);
}

Result<Value> zero_fill(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Text& text = *self.text();
  const bool sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+');
  const Value* width = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("zfill", {"/width"}, &width));
  COPPICE_TRY(const auto wanted, whole(width, "zfill"));
  if (!wanted) return fail("zfill wants a width");
  Arguments zeros;
  zeros.positional = {Value(*wanted - (sign && *wanted > 0 ? 1 : 0)), Value("0")};
  COPPICE_TRY(const Value digits, padded(runtime, text.slice(sign ? 1 : 0, text.size()), zeros, 1));
  Text out = text.slice(0, sign ? 1 : 0);
  out.append(*digits.text());
  return runtime.text(std::move(out));
}

Result<Value> format_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return brace_format(runtime, *self.text(), arguments);
}

constexpr MethodRow kTextMethods[] = {
    {"capitalize", changed<capitalize>},
    {"center", justify<0>},
    {"count", count_text},
    {"endswith", has_edge<true>},
    {"find", find_text<false, false>},
    {"format", format_text},
    {"index", find_text<false, true>},
    {"isalnum", is_so<all_have<kAlpha | kDecimal | kDigit | kNumeric>>},
    {"isalpha", is_so<all_have<kAlpha>>},
    {"isascii", is_so<is_ascii>},
    {"isdecimal", is_so<all_have<kDecimal>>},
    {"isdigit", is_so<all_have<kDigit>>},
    {"islower", is_so<is_lower>},
    {"isnumeric", is_so<all_have<kNumeric>>},
    {"isprintable", is_so<is_printable>},
    {"isspace", is_so<all_have<kSpace>>},
    {"istitle", is_so<is_title>},
    {"isupper", is_so<is_upper>},
    {"join", join_items},
    {"ljust", justify<-1>},
    {"lower", in_case<Case::lower>},
    {"lstrip", strip_text<Side::left>},
    {"partition", partition<false>},
    {"removeprefix", remove_edge<false>},
    {"removesuffix", remove_edge<true>},
    {"replace", replace_text},
    {"rfind", find_text<true, false>},
    {"rindex", find_text<true, true>},
    {"rjust", justify<1>},
    {"rpartition", partition<true>},
    {"rsplit", split_text<true>},
    {"rstrip", strip_text<Side::right>},
    {"split", split_text<false>},
    {"splitlines", splitlines},
    {"startswith", has_edge<false>},
    {"strip", strip_text<Side::both>},
    {"swapcase", changed<swap_case>},
    {"title", changed<title>},
    {"upper", in_case<Case::upper>},
    {"zfill", zero_fill},
};

// -- dict, list, tuple, float
// ----------------------------------------------------------------------------------------

Result<Value> dict_get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("get", {"/key", "/default"}, slots));
  if (!slots[0]) return fail("get wants a key");
  if (!hashable(*slots[0])) return fail(fmt::format("a {} cannot be a dict's key", type_name(*slots[0])));
  COPPICE_TRY_STATUS(runtime.charge(2 * self.dict()->entries.size() + slots[0]->weight()));
  if (const Value* found = self.dict()->find(*slots[0])) return *found;
  return slots[1] ? *slots[1] : Value();
}

template <Form form>
Result<Value> dict_view(Runtime& runtime, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(nothing(arguments, "items, keys, values"));
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict()->entries) {
    if (form != Form::dict_items) {
      items.push_back(form == Form::dict_keys ? key : value);
      continue;
    }
    COPPICE_TRY_STATUS(runtime.charge(64));
    COPPICE_TRY(items.emplace_back(), make_sequence(Form::tuple, {key, value}));
  }
  return runtime.list(form, std::move(items));
}

Result<Value> same(Runtime&, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(nothing(arguments, "copy"));
  return self;  // nothing can tell a copy from it: values do not change
}

constexpr MethodRow kDictMethods[] = {
    {"clear", nullptr},
    {"copy", same},
    {"get", dict_get},
    {"items", dict_view<Form::dict_items>},
    {"keys", dict_view<Form::dict_keys>},
    {"pop", nullptr},
    {"popitem", nullptr},
    {"setdefault", nullptr},
    {"update", nullptr},
    {"values", dict_view<Form::dict_values>},
};

template <bool place>
Result<Value> look_up(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slot = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("count, index", {"/value"}, &slot));
  if (!slot) return fail("count and index want a value");
  COPPICE_TRY_STATUS(runtime.charge(self.weight()));
  std::int64_t count = 0, at = 0;
  for (const Value& item : self.sequence()->items) {
    if (equal(item, *slot)) {
      if (place) return Value(at);
      ++count;
    }
    ++at;
  }
  if (place) return fail("index: the value is not among the items");
  return Value(count);
}

constexpr MethodRow kListMethods[] = {
    {"append", nullptr},      {"clear", nullptr},   {"copy", same},    {"count", look_up<false>},
    {"extend", nullptr},      {"insert", nullptr},  {"pop", nullptr},  {"remove", nullptr},
    {"index", look_up<true>}, {"reverse", nullptr}, {"sort", nullptr},
};
constexpr MethodRow kTupleMethods[] = {{"count", look_up<false>}, {"index", look_up<true>}};

Result<Value> is_integer(Runtime&, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(nothing(arguments, "is_integer"));
  return Value(std::isfinite(*self.number()) && std::floor(*self.number()) == *self.number());
}
constexpr MethodRow kFloatMethods[] = {{"is_integer", is_integer}};

std::span<const MethodRow> methods_of(const Value& value) {
  if (value.text()) return kTextMethods;
  if (value.dict()) return kDictMethods;
  if (value.number()) return kFloatMethods;
  const Sequence* sequence = value.sequence();
  if (sequence && sequence->form == Form::list) return kListMethods;
  if (sequence && (sequence->form == Form::tuple || sequence->form == Form::range)) return kTupleMethods;
  return {};
}

}  // namespace

const MethodRow* find_method(const Value& value, std::string_view name) {
  for (const MethodRow& row : methods_of(value))
    if (row.name == name) return &row;
  return nullptr;
}

Result<Value> call_method(Runtime& runtime, const Method& method, const Arguments& arguments) {
  return method.row->run(runtime, *method.self, arguments);
}

}  // namespace coppice::core::jinja
