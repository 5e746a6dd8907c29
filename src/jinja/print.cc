#include "jinja/print.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/check.h"
#include "jinja/runtime.h"
#include "jinja/unicode.h"

namespace coppice::core::jinja {
namespace {

void repr(const Value& value, Text& out);

// Escapes of characters from data are data too.
void repr(const Text& text, Text& out) {
  const std::string& bytes = text.bytes();
  const bool other_quote = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = other_quote ? '"' : '\'';
  out.append(std::string_view(&quote, 1));
  for (std::size_t at = 0; at < bytes.size();) {
    const Character c = character_at(bytes, at);
    const std::size_t end = at + c.bytes;
    std::string escaped;
    if (c.code == static_cast<char32_t>(quote) || c.code == U'\\') {
      escaped = {'\\', bytes[at]};
    } else if (c.code == U'\n') {
      escaped = "\\n";
    } else if (c.code == U'\r') {
      escaped = "\\r";
    } else if (c.code == U'\t') {
      escaped = "\\t";
    } else if (c.code == kNoCode) {
      escaped = fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[at]));
    } else if ((character_flags(c.code) & kPrintable) == 0) {
      const auto code = static_cast<std::uint32_t>(c.code);
      escaped = code < 0x100     ? fmt::format("\\x{:02x}", code)
                : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                 : fmt::format("\\U{:08x}", code);
    }
    if (escaped.empty()) {
      out.append(text, at, end);
    } else {
      out.append(escaped, text.any_data(at, end) ? Origin::data : Origin::own);
    }
    at = end;
  }
  out.append(std::string_view(&quote, 1));
}

void repr(const Sequence& sequence, Text& out) {
  using Form = Sequence::Form;
  if (sequence.form == Form::range) {
    out.append(fmt::format("range({}, {}", sequence.start, sequence.stop));
    out.append(sequence.step == 1 ? ")" : fmt::format(", {})", sequence.step));
    return;
  }
  if (sequence.once()) return out.append("<generator>");
  const bool tuple = sequence.form == Form::tuple;
  const bool list = sequence.form == Form::list;
  if (!tuple && !list) {
    constexpr std::string_view kViews[] = {"dict_items(", "dict_keys(", "dict_values("};
    out.append(kViews[static_cast<std::size_t>(sequence.form) - static_cast<std::size_t>(Form::dict_items)]);
  }
  out.append(tuple ? "(" : "[");
  for (std::size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) out.append(", ");
    repr(sequence.items[i], out);
  }
  if (tuple && sequence.items.size() == 1) out.append(",");
  out.append(tuple ? ")" : "]");
  if (!tuple && !list) out.append(")");
}

template <class Entries>
void repr_entries(const Entries& entries, Text& out) {
  out.append("{");
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (!first) out.append(", ");
    first = false;
    repr(key, out);
    out.append(": ");
    repr(value, out);
  }
  out.append("}");
}

void repr(const Object& object, Text& out) {
  if (object.kind == Object::Kind::loop) return out.append(static_cast<const Loop&>(object).show());
  // A namespace may hold itself: what is in it is not shown.
  constexpr std::string_view kShown[] = {"<Namespace>", "<Macro>", "", "<function>", "<method>"};
  out.append(kShown[static_cast<std::size_t>(object.kind)]);
}

void repr(const Value& value, Text& out) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return out.append("Undefined");
    case Value::Kind::none:
      return out.append("None");
    case Value::Kind::boolean:
      return out.append(*value.boolean() ? "True" : "False");
    case Value::Kind::integer:
      return out.append(fmt::format("{}", *value.integer()));
    case Value::Kind::number:
      return out.append(float_text(*value.number()));
    case Value::Kind::text:
      return repr(*value.text(), out);
    case Value::Kind::sequence:
      return repr(*value.sequence(), out);
    case Value::Kind::dict:
      return repr_entries(value.dict()->entries, out);
    case Value::Kind::method:
      return out.append("<built-in method>");
    case Value::Kind::object:
      return repr(*value.object(), out);
  }
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  (void)error;  // 40 bytes hold every double
  const std::string_view shown(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = shown.find('e');
  int exponent = 0;
  const std::string_view tail = shown.substr(e + 1);
  std::from_chars(tail.data() + (tail[0] == '+' ? 1 : 0), tail.data() + tail.size(), exponent);
  std::string out(shown[0] == '-' ? "-" : "");
  std::string digits;
  for (const char c : shown.substr(0, e))
    if (c >= '0' && c <= '9') digits.push_back(c);
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02d}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  const bool cut = text.size() > kLongest;
  std::size_t end = text.size();
  if (cut) {
    end = 0;
    while (end < kLongest) end += character_at(text, end).bytes;
  }
  Text shown;
  repr(Text(std::string(text.substr(0, end))), shown);
  return shown.bytes() + (cut ? "..." : "");
}

Text to_text(const Value& value) {
  if (value.is_undefined()) return Text();
  if (const Text* text = value.text()) return *text;
  return to_repr(value);
}

Text to_repr(const Value& value) {
  Text out;
  repr(value, out);
  return out;
}

}  // namespace coppice::core::jinja
