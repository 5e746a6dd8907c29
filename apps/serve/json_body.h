// JSON from the network: bounded before anything is built from it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api.h"

namespace coppice::serve {

using Json = nlohmann::ordered_json;

inline constexpr int kDeepestBody = 64;       // arrays and objects in one another
inline constexpr int kMostObjectKeys = 2048;  // of one object: looking a key up walks along them

// The object that a body is. Errors: no JSON (where), a key twice, too deep, too many keys, no object.
ApiResult<Json> parse_body(std::string_view body);
// Any JSON within the same bounds; nothing where it is none.
std::optional<Json> parse_bounded(std::string_view text);

// As text for an answer: bytes that are no UTF-8 become U+FFFD.
std::string dump(const Json& json);

// At most `most` bytes of a text, whole characters, and ... for the rest.
std::string shortened(std::string_view text, std::size_t most);

// An error that names a field and says what would be right. A sentence that quotes more of the request than
// anybody reads is cut.
ApiError invalid(std::string param, std::string_view message);
// A Result's sentence as the API's error.
ApiError invalid(std::string param, const Error& error);

}  // namespace coppice::serve
