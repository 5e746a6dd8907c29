// The keywords of schemas: which are known, what their values look like, which say nothing about values.
#pragma once

#include <coppice/error.h>

#include <string>
#include <string_view>

#include "grammar/json_text.h"

namespace coppice::core::grammar {

// Every keyword of `schema`, an object, is known and has a value of the right kind.
Status check_keywords(const Json& schema, const std::string& where);
// It describes or holds definitions; it constrains nothing.
bool is_annotation(std::string_view keyword);

const Json* find_keyword(const Json& schema, std::string_view keyword);
// A count, or `otherwise` where it is not there. Counts are at most kMostCount.
int count_of(const Json& schema, std::string_view keyword, int otherwise);
inline constexpr int kMostCount = 1'000'000;

// "minItems 3 is more than maxItems 2", of two keywords that are there.
std::string crossed(const Json& schema, std::string_view least, std::string_view most);

// The pointer of a part.
std::string below(const std::string& where, std::string_view key);

}  // namespace coppice::core::grammar
