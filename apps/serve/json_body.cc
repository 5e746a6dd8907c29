#include "json_body.h"

#include <fmt/format.h>

#include <unordered_set>
#include <vector>

namespace coppice::serve {
namespace {

constexpr std::size_t kLongestQuote = 200;      // bytes of an answer's error
constexpr std::size_t kLongestSentence = 2000;  // bytes

// nlohmann's sentence without the name of its exception.
std::string sentence(const char* what) {
  std::string_view text = what;
  if (const auto end = text.find("] "); end != std::string_view::npos) text.remove_prefix(end + 2);
  return "the body is no JSON: " + std::string(text.substr(0, kLongestQuote));
}

// Builds the value while it is parsed, and stops at the first problem, so that a bomb costs no memory. (The
// library's own callbacks would do, but look at all elements of an array again after each of them.)
class Builder final : public Json::json_sax_t {
 public:
  Json value;
  std::string problem;

  bool null() override { return add(nullptr); }
  bool boolean(bool held) override { return add(held); }
  bool number_integer(std::int64_t held) override { return add(held); }
  bool number_unsigned(std::uint64_t held) override { return add(held); }
  bool number_float(double held, const std::string&) override { return add(held); }
  bool string(std::string& held) override { return add(std::move(held)); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    auto& known = open_.back().keys;
    if (!known.insert(name).second) {
      problem = fmt::format("the body has the key \"{}\" twice in one object; once is right",
                            name.substr(0, kLongestQuote));
    } else if (static_cast<int>(known.size()) > kMostObjectKeys) {
      problem =
          fmt::format("an object of the body has too many keys; at most {} are possible", kMostObjectKeys);
    }
    key_ = std::move(name);
    return problem.empty();
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    if (problem.empty()) problem = sentence(error.what());
    return false;
  }

 private:
  struct Open {
    Json* container;
    std::unordered_set<std::string> keys;  // of an object
  };

  bool add(Json element) {
    place(std::move(element));
    return true;
  }

  Json* place(Json element) {
    if (open_.empty()) {
      value = std::move(element);
      return &value;
    }
    Json& container = *open_.back().container;
    if (container.is_array()) {
      container.push_back(std::move(element));
      return &container.back();
    }
    auto& members = container.get_ref<Json::object_t&>();  // no key is in it twice: no need to look for it
    members.emplace_back(std::move(key_), std::move(element));
    return &members.back().second;
  }

  bool open(Json container) {
    if (static_cast<int>(open_.size()) == kDeepestBody) {
      problem =
          fmt::format("the body's JSON is nested too deeply; at most {} levels are possible", kDeepestBody);
      return false;
    }
    open_.push_back({place(std::move(container)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<Open> open_;  // a container does not move while one inside it is open
  std::string key_;
};

Result<Json> parse(std::string_view text) {
  Builder builder;
  if (Json::sax_parse(text, &builder)) return std::move(builder.value);
  return fail(builder.problem);
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

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

ApiError invalid(std::string param, std::string_view message) {
  ApiError error;
  error.message = shortened(message, kLongestSentence);
  error.param = std::move(param);
  return error;
}

ApiError invalid(std::string param, const Error& error) { return invalid(std::move(param), error.message); }

}  // namespace coppice::serve
