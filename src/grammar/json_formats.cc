#include "grammar/json_formats.h"

#include <utility>
#include <vector>

namespace coppice::core::grammar {
namespace {

using Named = std::vector<std::pair<std::string_view, std::string>>;

// Days that there are, leap years too (RFC 3339; years 0001 to 9999).
std::string date() {
  const std::string year = "(000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d\\d\\d)";
  const std::string of_four = "(0[48]|[2468][048]|[13579][26])";
  const std::string leap_year = "([0-9][0-9]" + of_four + "|" + of_four + "00)";
  return "(" + year +
         "-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))"
         "|" +
         leap_year + "-02-29)";
}

std::string time() {
  const std::string minutes = "([01]\\d|2[0-3]):[0-5]\\d";
  return minutes + ":[0-5]\\d(\\.\\d{1,6})?(Z|[+-]" + minutes + ")";
}

// ISO 8601, the parts in order and without gaps (RFC 3339, appendix A).
std::string duration() {
  const std::string n = "\\d{1,6}";
  const auto three = [&](const std::string& a, const std::string& b, const std::string& c) {
    return "(" + n + a + "(" + n + b + "(" + n + c + ")?)?|" + n + b + "(" + n + c + ")?|" + n + c + ")";
  };
  const std::string times = "T" + three("H", "M", "S");
  return "P(" + n + "W|" + three("Y", "M", "D") + "(" + times + ")?|" + times + ")";
}

std::string hostname() {
  const std::string label = "[A-Za-z0-9]{1,20}(-[A-Za-z0-9]{1,20}){0,2}";
  return label + "(\\." + label + "){0,5}";
}

std::string ipv4() {
  const std::string byte = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]\\d|\\d)";
  return byte + "(\\." + byte + "){3}";
}

std::string ipv6() {
  const std::string group = "[0-9a-fA-F]{1,4}";
  std::string out = "((" + group + ":){7}" + group;
  // n groups, ::, and at most 7 - n behind it
  for (int n = 0; n <= 7; ++n) {
    const std::string before = n == 0 ? "" : group + "(:" + group + "){" + std::to_string(n - 1) + "}";
    const std::string behind =
        n == 7 ? "" : "(" + group + "(:" + group + "){0," + std::to_string(6 - n) + "})?";
    out += "|" + before + "::" + behind;
  }
  return out + ")";
}

std::string uri(bool relative) {
  const std::string character = "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
  const std::string path = "(/" + character + "{0,80}){0,20}";
  const std::string tail = "(\\?(" + character + "|[/?]){0,300})?(#(" + character + "|[/?]){0,100})?";
  const std::string absolute = "[a-z][a-z0-9+.-]{1,15}://" + hostname() + "(:[1-9]\\d{0,3})?" + path + tail;
  if (!relative) return absolute;
  return "(" + absolute + "|(/" + character + "{1,80}){0,20}/?" + tail + ")";
}

const Named& formats() {
  static const Named kFormats = {
      {"date", date()},
      {"time", time()},
      {"date-time", date() + "T" + time()},
      {"duration", duration()},
      {"uuid", "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
      {"email", "[A-Za-z0-9_+-]{1,40}(\\.[A-Za-z0-9_+-]{1,20}){0,3}@" + hostname() + "\\.[A-Za-z]{2,15}"},
      {"hostname", hostname()},
      {"ipv4", ipv4()},
      {"ipv6", ipv6()},
      {"uri", uri(false)},
      {"uri-reference", uri(true)},
  };
  return kFormats;
}

}  // namespace

std::optional<std::string> pattern_of_format(std::string_view format) {
  for (const auto& [name, pattern] : formats())
    if (name == format) return "^(" + pattern + ")$";
  return std::nullopt;
}

std::string known_formats() {
  std::string out;
  for (const auto& [name, pattern] : formats()) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

}  // namespace coppice::core::grammar
