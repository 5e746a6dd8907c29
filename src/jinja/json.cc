#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/unicode.h"

namespace coppice::core::jinja {
namespace {

std::string escape(char32_t code, unsigned char byte, bool ascii) {
  switch (code) {
    case U'"':
      return "\\\"";
    case U'\\':
      return "\\\\";
    case U'\n':
      return "\\n";
    case U'\r':
      return "\\r";
    case U'\t':
      return "\\t";
    case U'\f':
      return "\\f";
    case U'\b':
      return "\\b";
    case kNoCode:
      return ascii ? fmt::format("\\udc{:02x}", byte) : "";
    default:
      break;
  }
  const auto value = static_cast<std::uint32_t>(code);
  if (value < 0x20 || (ascii && value >= 0x7F && value < 0x10000)) {
    return fmt::format("\\u{:04x}", value);
  }
  if (ascii && value >= 0x10000) {
    const std::uint32_t rest = value - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
  }
  return "";
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  Status write(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::none:
        out.append("null");
        return {};
      case Value::Kind::boolean:
        out.append(*value.boolean() ? "true" : "false");
        return {};
      case Value::Kind::integer:
        out.append(fmt::format("{}", *value.integer()));
        return {};
      case Value::Kind::number:
        out.append(number(*value.number()));
        return {};
      case Value::Kind::text:
        text(*value.text());
        return {};
      case Value::Kind::dict:
        return dict(*value.dict());
      case Value::Kind::sequence:
        if (value.sequence()->form <= Sequence::Form::tuple) return list(*value.sequence());
        break;
      default:
        break;
    }
    return fail(fmt::format("tojson: {} has no JSON form", type_name(value)));
  }

  Text out;

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_text(value);
  }

  void text(const Text& text) {
    const std::string& bytes = text.bytes();
    out.append("\"");
    for (std::size_t at = 0, plain = 0; at < bytes.size();) {
      const Character c = character_at(bytes, at);
      const std::string escaped = escape(c.code, static_cast<unsigned char>(bytes[at]), style_.ensure_ascii);
      const std::size_t end = at + c.bytes;
      if (!escaped.empty()) {
        out.append(text, plain, at);
        out.append(escaped, text.any_data(at, end) ? Origin::data : Origin::own);
        plain = end;
      }
      if (end == bytes.size()) out.append(text, plain, end);
      at = end;
    }
    out.append("\"");
  }

  void new_line() {
    if (!style_.lines) return;
    out.append("\n");
    for (int i = 0; i < depth_; ++i) out.append(style_.indent);
  }

  Status list(const Sequence& list) {
    out.append("[");
    ++depth_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out.append(style_.item_separator);
      new_line();
      COPPICE_TRY_STATUS(write(list.items[i]));
    }
    --depth_;
    if (!list.items.empty()) new_line();
    out.append("]");
    return {};
  }

  Result<Text> key(const Value& key) const {
    if (const Text* text = key.text()) return *text;
    if (key.is_none()) return Text("null");
    if (const bool* b = key.boolean()) return Text(*b ? "true" : "false");
    if (const std::int64_t* i = key.integer()) return Text(fmt::format("{}", *i));
    if (const double* n = key.number()) return Text(number(*n));
    return fail(fmt::format("tojson: a dict's key is a {}; keys must be str, int, float, bool or None",
                            type_name(key)));
  }

  Status dict(const Dict& dict) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      Status sorted;
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        const auto order = compare(a->first, b->first);
        if (!order && sorted) sorted = fail(order.error().message);
        return order && *order == -1;
      });
      COPPICE_TRY_STATUS(sorted);
    }
    out.append("{");
    ++depth_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out.append(style_.item_separator);
      new_line();
      COPPICE_TRY(const Text name, key(entries[i]->first));
      text(name);
      out.append(style_.key_separator);
      COPPICE_TRY_STATUS(write(entries[i]->second));
    }
    --depth_;
    if (!entries.empty()) new_line();
    out.append("}");
    return {};
  }

  const JsonStyle& style_;
  int depth_ = 0;
};

Result<Value> read(const nlohmann::ordered_json& json, int depth) {
  if (depth > kMaxDepth)
    return fail(fmt::format("JSON nests more than {} deep, which is the limit", kMaxDepth));
  if (json.is_null()) return Value();
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX)
    return fail(fmt::format("the number {} has more than 64 bits", json.get<std::uint64_t>()));
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_string()) return Value(Text(json.get<std::string>(), Origin::data));
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) {
      COPPICE_TRY(items.emplace_back(), read(item, depth + 1));
    }
    return make_sequence(Sequence::Form::list, std::move(items));
  }
  if (!json.is_object()) return fail("JSON holds binary data, which has no place in a conversation");
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : json.items()) {
    COPPICE_TRY(Value held, read(value, depth + 1));
    entries.emplace_back(Value(Text(key, Origin::data)), std::move(held));
  }
  return make_dict(std::move(entries));
}

}  // namespace

Result<Text> to_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  COPPICE_TRY_STATUS(writer.write(value));
  return std::move(writer.out);
}

Result<Value> from_json(const nlohmann::ordered_json& json) { return read(json, 1); }

}  // namespace coppice::core::jinja
