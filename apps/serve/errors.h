// The errors that several parts of the server answer with, each said in one place.
#pragma once

#include <cstddef>
#include <string>

#include "api.h"

namespace coppice::serve {

ApiError server_error();                                           // 500: a bug of ours, the log says more
ApiError unavailable(std::string message, std::string code = "");  // 503: later, perhaps
// 429. `for_room`: those who wait want room in the cache, not one of the places.
ApiError queue_full(bool for_room);
ApiError unknown_model(const std::string& name);  // 404
// 503 of a model that is known: its file went away after the start, or why is for the log alone.
ApiError file_missing(const std::string& model);
ApiError cannot_be_loaded(const std::string& model);
ApiError context_exceeded(std::size_t prompt, int context, const std::string& field);
// Of a generation that failed on the way. Where the request's own grammar or bans (`narrowed`: the field;
// empty: none) left no token to draw, it is its sender who can do something about it.
ApiError failure(const std::string& narrowed, const Generation& generation);

}  // namespace coppice::serve
