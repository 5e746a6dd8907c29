// Regular expressions of schemas (`pattern`), as expressions over the characters of a JSON string.
//
// The part of ECMA 262 that is regular and that people write in schemas: classes with ranges and negation,
// groups, alternatives, * + ? {n} {n,} {n,m}, \d \w \s and their opposites, escapes, `.`, and ^ and $ at the
// ends of alternatives of the whole. Everything else is refused by name.
#pragma once

#include <coppice/error.h>

#include <string_view>

#include "grammar/json_text.h"

namespace coppice::core::grammar {

struct Pattern {
  ExpressionId inside = -1;  // of the string's quotes
  // Characters of what it matches; most may be kForever.
  int least = 0, most = 0;
};

// The error says what in the pattern it is about, not where the pattern stands.
Result<Pattern> parse_pattern(JsonText& json, std::string_view text);

}  // namespace coppice::core::grammar
