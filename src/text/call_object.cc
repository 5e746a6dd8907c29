#include "text/call_object.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_depth.h"

namespace coppice::core {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestKey = 200;  // in its quotes; what is longer is no call

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_arguments(std::string_view key) { return key == "arguments" || key == "parameters"; }
bool is_name(std::string_view key) { return key == "name" || key == "tool_name"; }

// What a model wrote; nothing where it is no JSON, or nested so deeply that nobody should walk it.
std::optional<Json> parse(const std::string& text) {
  constexpr int kDeepest = 64;
  if (json_deeper_than(text, kDeepest)) return std::nullopt;
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? std::nullopt : std::optional(std::move(value));
}

// A JSON string without its quotes; empty where it is none.
std::string unquote(const std::string& json) {
  const auto value = parse(json);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

}  // namespace

CallObject::CallObject(std::string name) : whole_(!name.empty()), name_(std::move(name)) {}

CallObject::State CallObject::push(char c) {
  raw_ += c;
  switch (where_) {
    case Where::start:
      if (c != '{') return State::wrong;
      where_ = whole_ ? Where::value : Where::key;
      if (whole_) {
        key_ = "arguments";
        return push_value(c);
      }
      return State::open;
    case Where::key:
    case Where::in_key:
    case Where::colon:
      return push_key(c);
    case Where::value:
      return push_value(c);
    case Where::end:
      return State::done;
  }
  return State::wrong;
}

CallObject::State CallObject::push_key(char c) {
  if (where_ == Where::in_key) {
    key_ += c;
    const bool ends = c == '"' && !escaped_;
    escaped_ = c == '\\' && !escaped_;
    if (ends) {
      key_ = unquote(key_);
      where_ = Where::colon;
    }
    return key_.size() <= kLongestKey ? State::open : State::wrong;
  }
  if (is_space(c)) return State::open;
  if (where_ == Where::colon) {
    where_ = Where::value;
    value_.clear();
    return c == ':' ? State::open : State::wrong;
  }
  if (c == ',') return State::open;
  if (c == '}') {
    where_ = Where::end;
    if (arguments_.empty()) arguments_ = "{}";
    return named() ? State::done : State::wrong;
  }
  if (c != '"') return State::wrong;
  key_ = c;
  escaped_ = false;
  where_ = Where::in_key;
  return State::open;
}

// A number or a word ends before what follows it, everything else with its own last byte.
bool CallObject::value_ends_before(char c) const {
  const bool scalar = !value_.empty() && value_[0] != '{' && value_[0] != '[' && value_[0] != '"';
  return scalar && (c == ',' || c == '}' || is_space(c));
}

bool CallObject::value_ended(char c) {
  if (in_string_) {
    const bool ends = c == '"' && !escaped_;
    escaped_ = c == '\\' && !escaped_;
    in_string_ = !ends;
    return ends && depth_ == 0;
  }
  if (c == '"') {
    in_string_ = true;
    escaped_ = false;
  }
  if (c == '{' || c == '[') ++depth_;
  if (c != '}' && c != ']') return false;
  return --depth_ <= 0;
}

CallObject::State CallObject::push_value(char c) {
  if (value_.empty() && is_space(c)) return State::open;
  if (value_ends_before(c)) {
    take_value();
    where_ = Where::key;
    return push_key(c);
  }
  value_ += c;
  // A text of arguments is decoded when it is whole; an object's are what the model writes.
  if (is_arguments(key_) && value_[0] == '{') arguments_ += c;
  if (!value_ended(c)) return State::open;
  take_value();
  where_ = whole_ ? Where::end : Where::key;
  return whole_ ? State::done : State::open;
}

void CallObject::take_value() {
  depth_ = 0;
  if (is_name(key_)) name_ = unquote(value_);
  if (is_arguments(key_) && value_[0] == '"') arguments_ = unquote(value_);
  if (key_ == "function") take_function();
}

// {"type": "function", "function": {"name": ..., "arguments": ...}}, as OpenAI's API has it; or its name
// alone.
void CallObject::take_function() {
  const auto function = parse(value_);
  if (!function) return;
  if (function->is_string()) name_ = function->get<std::string>();
  if (!function->is_object()) return;
  for (const auto& [key, value] : function->items()) {
    if (is_name(key) && value.is_string()) name_ = value.get<std::string>();
    if (is_arguments(key))
      arguments_ = value.is_string() ? value.get<std::string>()
                                     : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

}  // namespace coppice::core
