// Values as text: what `{{ value }}` writes, Python's repr of them, and JSON.
#pragma once

#include <coppice/error.h>

#include <nlohmann/json_fwd.hpp>

#include "jinja/value.h"

namespace coppice::core::jinja {

// Python's str(): bytes that came from data stay marked so.
Text to_text(const Value& value);
Text to_repr(const Value& value);
std::string float_text(double value);  // Python's repr of a float: the shortest digits that read back
// A name or a text of a template in a message: in quotes, on one line, not too long.
std::string in_quotes(std::string_view text);

// json.dumps(value, ensure_ascii=..., indent=..., separators=..., sort_keys=...).
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool lines = false;  // one item a line, `indent` for each depth
  Text indent;
  Text item_separator{", "}, key_separator{": "};
};
Result<Text> to_json(const Value& value, const JsonStyle& style);

// All texts in it are data, keys too. Fails for what nests too deep and for whole numbers beyond 64 bits.
Result<Value> from_json(const nlohmann::ordered_json& json);

}  // namespace coppice::core::jinja
