// Grammars as people write them, in the style of GBNF. docs/grammar.md has the language.
#pragma once

#include <coppice/error.h>

#include <string_view>

#include "grammar/compiled.h"

namespace coppice::core::grammar {

// The first symbol is `root`. Errors begin with "line L, column C: ".
Result<Compiled> parse_gbnf(std::string_view text);

}  // namespace coppice::core::grammar
