#include "errors.h"

#include <fmt/core.h>

#include <utility>

#include "json_body.h"

namespace coppice::serve {
namespace {

constexpr std::size_t kLongestQuote = 200;  // bytes of a name

ApiError coded(int status, std::string type, std::string code, std::string message) {
  ApiError error;
  error.status = status;
  error.type = std::move(type);
  error.code = std::move(code);
  error.message = std::move(message);
  return error;
}

}  // namespace

ApiError server_error() {
  return coded(500, "server_error", "",
               "the server failed on this request; this is a bug of ours, and its log says more");
}

ApiError unavailable(std::string message, std::string code) {
  return coded(503, "server_error", std::move(code), std::move(message));
}

ApiError queue_full(bool for_room) {
  return coded(429, "rate_limit_error", "server_busy",
               for_room
                   ? "as many requests wait as may, for room in the cache; try again later, or ask for fewer "
                     "tokens (max_tokens)"
                   : "as many requests wait as may; try again later");
}

ApiError unknown_model(const std::string& name) {
  ApiError error = coded(404, "invalid_request_error", "model_not_found",
                         fmt::format("there is no model \"{}\" here; /v1/models lists those there are",
                                     shortened(name, kLongestQuote)));
  error.param = "model";
  return error;
}

ApiError file_missing(const std::string& model) {
  ApiError error = unavailable(
      fmt::format("the model {} cannot be loaded: its file is not where it was when the server started; once "
                  "whoever runs the server has put it back, it answers again",
                  model),
      "model_file_missing");
  error.param = "model";
  return error;
}

ApiError cannot_be_loaded(const std::string& model) {
  return unavailable(fmt::format("the model {} cannot be loaded; the server's log says why", model),
                     "model_not_loaded");
}

ApiError context_exceeded(std::size_t prompt, int context, const std::string& field) {
  ApiError error = invalid(
      field, fmt::format("the prompt has {} tokens and the context holds {}; shorten it", prompt, context));
  error.code = "context_length_exceeded";
  return error;
}

ApiError failure(const std::string& narrowed, const Generation& generation) {
  if (narrowed.empty() || generation.failure != FailureKind::nothing_to_draw) return server_error();
  return invalid(narrowed, generation.error);
}

}  // namespace coppice::serve
