// JSON Schema as a grammar: the texts of the values that are valid under it, members in the schema's order.
// docs/grammar.md says which keywords are kept, which are refused, and where less than all valid texts is
// written.
#pragma once

#include <coppice/error.h>

#include <string_view>

#include "grammar/compiled.h"

namespace coppice::core::grammar {

// Errors name the place, a JSON pointer, and the keyword.
Result<Compiled> compile_json_schema(std::string_view text);

}  // namespace coppice::core::grammar
