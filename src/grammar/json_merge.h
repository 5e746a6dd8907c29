// What two schemas say together, as one schema: for allOf, and for keywords beside $ref, anyOf or oneOf.
#pragma once

#include <coppice/error.h>

#include <optional>
#include <string>

#include "grammar/json_text.h"

namespace coppice::core::grammar {

// Neither has $ref, allOf, anyOf or oneOf. Refuses, at `where`, what one schema cannot say.
struct Merged {
  std::optional<Json> schema;  // empty: nothing is valid under both
  std::string why;             // then: the keyword that says so
};
Result<Merged> merge_schemas(const Json& a, const Json& b, const std::string& where);

// "type" as a list; empty: there is none. Integers are among numbers.
std::vector<std::string> types_of(const Json& schema);

// An error about a place of the schema, a JSON pointer.
tl::unexpected<Error> refuse_schema(const std::string& where, const std::string& what);

}  // namespace coppice::core::grammar
