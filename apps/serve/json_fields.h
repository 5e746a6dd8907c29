// The fields of a JSON object in a request. Each is asked for by its name, with what is right for it; in the
// end whatever nobody asked for is refused by name. The first error stays, and after it every getter gives
// its fallback: who reads an object needs no check between the fields.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json_body.h"

namespace coppice::serve {

class Fields {
 public:
  // `json` must outlive this. `path`: where the object is in the body, "stream_options"; empty: it is the
  // body.
  explicit Fields(const Json& json, std::string path = "");

  // null where the field is absent or null, which is the same.
  const Json* find(std::string_view name);
  bool has(std::string_view name) { return find(name) != nullptr; }

  bool boolean(std::string_view name, bool fallback);
  std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high, std::int64_t fallback);
  std::optional<int> maybe_integer(std::string_view name, int low, int high);
  float number(std::string_view name, double low, double high, float fallback);
  float share(std::string_view name, float fallback);  // above 0, at most 1
  std::optional<float> maybe_number(std::string_view name, double low, double high);
  std::string text(std::string_view name, std::string fallback = "");
  std::optional<std::string> maybe_text(std::string_view name);
  // One of `choices`; the first is the fallback.
  std::string choice(std::string_view name, std::initializer_list<std::string_view> choices);
  // A text or a list of texts.
  std::vector<std::string> texts(std::string_view name, std::size_t most);
  const Json* object(std::string_view name);  // null where absent
  const Json* array(std::string_view name);

  // Known, and not possible here: an error that says why, if it is there.
  void refuse(std::string_view name, std::string_view why);
  // Known, and without a meaning for the answer.
  void ignore(std::initializer_list<std::string_view> names);

  void error(std::string_view name, std::string_view message);  // of a field; empty: of the object
  void error(ApiError error);
  bool ok() const { return !error_.has_value(); }
  // Nothing more will be asked for. The error there is, or the first field nobody asked for.
  tl::expected<void, ApiError> finish();

  std::string path_of(std::string_view name) const;

 private:
  const Json* want(std::string_view name, bool right(const Json&), std::string_view what);

  const Json& json_;
  std::string path_;
  std::vector<std::string> known_;
  std::optional<ApiError> error_;
};

// A whole number, also one written as 3.0.
bool is_whole(const Json& json);
std::optional<std::int64_t> whole(const Json& json);  // nothing where it is none or leaves 64 bits
std::string show(const Json& json);                   // for errors: shortened

}  // namespace coppice::serve
