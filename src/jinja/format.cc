// Python's two ways to fill a text: "%s and %d" % (a, b), and "{} and {name}".format(a, name = b).
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/runtime.h"
#include "jinja/unicode.h"

namespace coppice::core::jinja {
namespace {

constexpr std::int64_t kWidest = 10000;  // of a field: wider ones are refused

struct Spec {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  std::int64_t width = 0, precision = -1;
  char type = 0;
};

// A number's digits and sign for %d, %x, %o.
Result<Text> whole_number(const Spec& spec, const Value& value) {
  std::int64_t number = 0;
  if (!value.to_integer(number)) {
    const bool truncates =
        value.number() && std::string_view("diu").find(spec.type) != std::string_view::npos;
    if (!truncates || !(std::abs(*value.number()) < 9e18))
      return fail(fmt::format("%{} wants a whole number, not a {}", spec.type, type_name(value)));
    number = static_cast<std::int64_t>(*value.number());
  }
  const std::uint64_t size =
      number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  std::string digits = spec.type == 'x'   ? fmt::format("{:x}", size)
                       : spec.type == 'X' ? fmt::format("{:X}", size)
                       : spec.type == 'o' ? fmt::format("{:o}", size)
                                          : fmt::format("{}", size);
  if (const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(spec.precision, 0));
      digits.size() < wanted)
    digits.insert(0, wanted - digits.size(), '0');
  std::string sign = number < 0 ? "-" : spec.plus ? "+" : spec.space ? " " : "";
  if (spec.alternate)
    sign += spec.type == 'o' ? "0o" : spec.type == 'x' ? "0x" : spec.type == 'X' ? "0X" : "";
  const auto missing = spec.width - static_cast<std::int64_t>(sign.size() + digits.size());
  if (spec.zero && !spec.left && missing > 0) digits.insert(0, static_cast<std::size_t>(missing), '0');
  return Text(sign + digits);
}

Result<Text> broken_number(const Spec& spec, const Value& value) {
  double number = 0;
  if (!value.to_number(number))
    return fail(fmt::format("%{} wants a number, not a {}", spec.type, type_name(value)));
  std::string pattern = "%";
  if (spec.alternate) pattern += '#';
  if (spec.plus) pattern += '+';
  if (spec.space) pattern += ' ';
  if (spec.zero && !spec.left && std::isfinite(number)) pattern += '0';
  if (spec.zero && !spec.left) pattern += fmt::format("{}", spec.width);
  pattern += fmt::format(".{}{}", spec.precision < 0 ? 6 : spec.precision, spec.type);
  const int size = std::snprintf(nullptr, 0, pattern.c_str(), number);
  std::string shown(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(shown.data(), shown.size(), pattern.c_str(), number);
  shown.pop_back();
  return Text(shown);
}

Result<Text> field(Runtime& runtime, const Spec& spec, const Value& value) {
  const auto is = [&](std::string_view types) { return types.find(spec.type) != std::string_view::npos; };
  if (is("sra")) {
    COPPICE_TRY_STATUS(runtime.charge(value.weight()));
    Text text = spec.type == 's' ? to_text(value) : to_repr(value);
    if (spec.precision < 0) return text;
    std::size_t end = 0;
    for (std::int64_t i = 0; i < spec.precision && end < text.size(); ++i)
      end += character_at(text.bytes(), end).bytes;
    return text.slice(0, end);
  }
  if (value.is_undefined()) return fail(*value.undefined()->why);
  if (is("diuxXo")) return whole_number(spec, value);
  if (is("eEfFgG")) return broken_number(spec, value);
  if (spec.type == 'c') {
    if (const Text* text = value.text(); text && count_characters(text->bytes()) == 1) return *text;
    std::int64_t code = 0;
    const bool right =
        value.to_integer(code) && code >= 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    if (!right) return fail("%c wants one character or its number");
    std::string character;
    append_code(character, static_cast<char32_t>(code));
    return Text(character);
  }
  return fail(fmt::format("%{} is no format; %s, %r, %d, %f, %e, %g, %x, %o and %c are", spec.type));
}

void append_padded(Text& out, const Text& text, const Spec& spec) {
  const auto size = static_cast<std::int64_t>(count_characters(text.bytes()));
  const std::string padding(static_cast<std::size_t>(std::max<std::int64_t>(spec.width - size, 0)), ' ');
  if (!spec.left) out.append(padding);
  out.append(text);
  if (spec.left) out.append(padding);
}

class Percent {
 public:
  Percent(Runtime& runtime, const Text& format, const Value& values)
      : runtime_(runtime), format_(format), text_(format.bytes()), values_(values) {}

  Result<Value> run() {
    Text out;
    out.markup = format_.markup;
    while (at_ < text_.size()) {
      const std::size_t next = std::min(text_.find('%', at_), text_.size());
      out.append(format_, at_, next);
      at_ = next;
      if (at_ < text_.size()) COPPICE_TRY_STATUS(one(out));
    }
    const Sequence* tuple = as_tuple();
    const bool left_over = tuple ? used_ < tuple->items.size() : used_ == 0 && !has_keys();
    if (left_over && !named_) return fail("not all values of % have a place in the text");
    return runtime_.text(std::move(out));
  }

 private:
  const Sequence* as_tuple() const {
    const Sequence* sequence = values_.sequence();
    return sequence && sequence->form == Sequence::Form::tuple ? sequence : nullptr;
  }

  // What Python takes for a mapping here: it need not be used up.
  bool has_keys() const {
    const Sequence* sequence = values_.sequence();
    const bool list =
        sequence && (sequence->form == Sequence::Form::list || sequence->form == Sequence::Form::range);
    return values_.dict() || list || values_.is_undefined();
  }

  Result<Value> next_value() {
    const Sequence* tuple = as_tuple();
    if (tuple ? used_ >= tuple->items.size() : used_ > 0) return fail("not enough values for the text's %");
    ++used_;
    return tuple ? tuple->items[used_ - 1] : values_;
  }

  Result<std::int64_t> number() {
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      COPPICE_TRY(const Value value, next_value());
      std::int64_t width = 0;
      if (!value.to_integer(width)) return fail("* in a format wants a whole number");
      if (std::abs(width) > kWidest) return fail(fmt::format("a field of % is wider than {}", kWidest));
      return width;
    }
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + (text_[at_] - '0');
      if (value > kWidest) return fail(fmt::format("a field of % is wider than {}", kWidest));
    }
    return value;
  }

  // From the '%' on.
  Status one(Text& out) {
    ++at_;
    Result<Value> value = Value();
    if (at_ < text_.size() && text_[at_] == '(') {
      const std::size_t close = text_.find(')', at_);
      if (!values_.dict() || close == std::string_view::npos) return fail("%(name) wants a dict behind %");
      const Value* found = values_.dict()->find(text_.substr(at_ + 1, close - at_ - 1));
      if (!found)
        return fail(fmt::format("% has no value {}", in_quotes(text_.substr(at_ + 1, close - at_ - 1))));
      value = *found;
      named_ = true;
      at_ = close + 1;
    }
    Spec spec;
    for (; at_ < text_.size() && std::string_view("-+ 0#").find(text_[at_]) != std::string_view::npos;
         ++at_) {
      spec.left = spec.left || text_[at_] == '-';
      spec.plus = spec.plus || text_[at_] == '+';
      spec.space = spec.space || text_[at_] == ' ';
      spec.zero = spec.zero || text_[at_] == '0';
      spec.alternate = spec.alternate || text_[at_] == '#';
    }
    COPPICE_TRY(spec.width, number());
    if (spec.width < 0) {
      spec.left = true;
      spec.width = -spec.width;
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      COPPICE_TRY(const std::int64_t precision, number());
      spec.precision = std::max<std::int64_t>(precision, 0);
    }
    while (at_ < text_.size() && std::string_view("hlL").find(text_[at_]) != std::string_view::npos) ++at_;
    if (at_ >= text_.size()) return fail("a format ends after its %");
    spec.type = text_[at_++];
    if (spec.type == '%') {
      out.append("%");
      return {};
    }
    if (!named_ || !values_.dict()) value = next_value();
    if (!value) return fail(value.error().message);
    COPPICE_TRY(const Text text, field(runtime_, spec, *value));
    COPPICE_TRY_STATUS(runtime_.charge(text.size() + static_cast<std::uint64_t>(spec.width)));
    append_padded(out, format_.markup && !text.markup ? escape_html(text) : text, spec);
    return {};
  }

  Runtime& runtime_;
  const Text& format_;
  std::string_view text_;
  const Value& values_;
  std::size_t at_ = 0, used_ = 0;
  bool named_ = false;
};

bool is_number(std::string_view name) {
  return !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Result<Value> percent_format(Runtime& runtime, const Text& format, const Value& values) {
  return Percent(runtime, format, values).run();
}

// Fields by place and by name; no attributes, conversions or formats in them.
Result<Value> brace_format(Runtime& runtime, const Text& format, const Arguments& arguments) {
  const std::string& text = format.bytes();
  Text out;
  out.markup = format.markup;
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      const std::size_t end = std::min(text.find_first_of("{}", at), text.size());
      out.append(format, at, end);
      at = end;
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == c) {
      out.append(format, at, at + 1);
      at += 2;
      continue;
    }
    const std::size_t close = c == '{' ? text.find('}', at) : std::string::npos;
    if (close == std::string::npos)
      return fail("format: a { or } stands alone; {{ and }} stand for themselves");
    const std::string_view name = std::string_view(text).substr(at + 1, close - at - 1);
    if (name.find_first_of(".[!:{") != std::string_view::npos)
      return fail(fmt::format("format: the field {} has more than a name or a place", in_quotes(name)));
    const Value* value = nullptr;
    if (name.empty() || is_number(name)) {
      const std::size_t place = name.empty() ? next++ : std::stoul(std::string(name));
      if (place < arguments.positional.size()) value = &arguments.positional[place];
    }
    for (const auto& [named, given] : arguments.named)
      if (named == name) value = &given;
    if (!value) return fail(fmt::format("format: there is no value for the field {{{}}}", name));
    COPPICE_TRY(const Text shown, runtime.to_text(*value));
    COPPICE_TRY_STATUS(runtime.charge(shown.size()));
    out.append(out.markup && !shown.markup ? escape_html(shown) : shown);
    at = close + 1;
  }
  return runtime.text(std::move(out));
}

}  // namespace coppice::core::jinja
