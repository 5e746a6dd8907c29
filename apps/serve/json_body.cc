#include "json_body.h"

#include <fmt/format.h>

#include <unordered_set>
#include <vector>

namespace coppice::serve {
namespace {

constexpr std::size_t kLongestQuote = 200;  // bytes of an answer's error

// Watches a parse. After the first problem nothing more is kept, so that a bomb costs no memory.
class Watch {
 public:
  bool operator()(int, Json::parse_event_t event, const Json& value) {
    if (!problem.empty()) return false;
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        return open();
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        keys_.pop_back();
        return true;
      case Json::parse_event_t::key:
        return key(value.get_ref<const std::string&>());
      case Json::parse_event_t::value:
        return true;
    }
    return true;
  }

  std::string problem;

 private:
  bool open() {
    keys_.emplace_back();
    if (static_cast<int>(keys_.size()) <= kDeepestBody) return true;
    problem =
        fmt::format("the body's JSON is nested too deeply; at most {} levels are possible", kDeepestBody);
    return false;
  }

  bool key(const std::string& name) {
    auto& known = keys_.back();
    if (!known.insert(name).second)
      problem = fmt::format("the body has the key \"{}\" twice in one object; once is right",
                            name.substr(0, kLongestQuote));
    else if (static_cast<int>(known.size()) > kMostObjectKeys)
      problem =
          fmt::format("an object of the body has too many keys; at most {} are possible", kMostObjectKeys);
    return problem.empty();
  }

  std::vector<std::unordered_set<std::string>> keys_;  // of every open object; empty for an array
};

// nlohmann's sentence without the name of its exception.
std::string sentence(const char* what) {
  std::string_view text = what;
  if (const auto end = text.find("] "); end != std::string_view::npos) text.remove_prefix(end + 2);
  return "the body is no JSON: " + std::string(text.substr(0, kLongestQuote));
}

Result<Json> parse(std::string_view text) {
  Watch watch;
  try {
    Json json = Json::parse(text, [&watch](int depth, Json::parse_event_t event, Json& value) {
      return watch(depth, event, value);
    });
    if (!watch.problem.empty()) return fail(watch.problem);
    return json;
  } catch (const Json::exception& error) {
    return fail(watch.problem.empty() ? sentence(error.what()) : watch.problem);
  }
}

}  // namespace

ApiResult<Json> parse_body(std::string_view body) {
  auto json = parse(body);
  if (!json) return tl::unexpected(invalid("", json.error()));
  if (!json->is_object()) return tl::unexpected(invalid("", "the body must be a JSON object"));
  return std::move(*json);
}

std::optional<Json> parse_bounded(std::string_view text) {
  auto json = parse(text);
  return json ? std::optional(std::move(*json)) : std::nullopt;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

ApiError invalid(std::string param, std::string message) {
  ApiError error;
  error.message = std::move(message);
  error.param = std::move(param);
  return error;
}

ApiError invalid(std::string param, const Error& error) { return invalid(std::move(param), error.message); }

}  // namespace coppice::serve
