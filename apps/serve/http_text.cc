#include "http_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <random>

namespace coppice::serve {
namespace {

constexpr std::size_t kMostIdBytes = 64;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool all_of(std::string_view text, bool (*right)(unsigned char)) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [&](char c) { return right(static_cast<unsigned char>(c)); });
}

}  // namespace

bool HttpRequest::has(std::string_view name) const {
  return std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
}

std::string_view HttpRequest::field(std::string_view name) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

std::string http_date(std::time_t when) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&when, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string head_text(const HttpHead& head, Framing framing, std::size_t length) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", head.status, reason_phrase(head.status));
  if (!head.content_type.empty()) out += fmt::format("Content-Type: {}\r\n", head.content_type);
  for (const auto& [name, value] : head.fields) out += fmt::format("{}: {}\r\n", name, value);
  const bool bodiless = head.status == 204 || head.status == 304;
  if (framing == Framing::length && !bodiless) out += fmt::format("Content-Length: {}\r\n", length);
  if (framing == Framing::chunked) out += "Transfer-Encoding: chunked\r\n";
  out += "\r\n";
  return out;
}

void append_chunk(std::string& out, std::string_view bytes) {
  if (bytes.empty()) return;
  out += fmt::format("{:x}\r\n", bytes.size());
  out += bytes;
  out += "\r\n";
}

bool split_target(std::string_view target, std::string& path, std::string& query) {
  if (const std::size_t scheme = target.find("://"); scheme != std::string_view::npos && target[0] != '/') {
    const std::size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  if (target.empty() || target[0] != '/') return false;
  const std::size_t mark = target.find('?');
  path = target.substr(0, mark);
  query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  return true;
}

std::string_view authority_of(std::string_view target) {
  const std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos || target[0] == '/') return {};
  target.remove_prefix(scheme + 3);
  return target.substr(0, target.find_first_of("/?#"));
}

bool asks_for_another_version(std::string_view input) {
  constexpr std::string_view kName = "HTTP/";
  const std::string_view line = input.substr(0, input.find("\r\n"));
  const std::size_t at = line.rfind(kName);
  if (at == std::string_view::npos) return false;
  const std::string_view version = line.substr(at + kName.size());
  const auto digit = [&](std::size_t i) { return version[i] >= '0' && version[i] <= '9'; };
  return version.size() == 3 && digit(0) && version[1] == '.' && digit(2) && version != "1.0" &&
         version != "1.1";
}

bool percent_decode(std::string_view text, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return false;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

bool is_request_id(std::string_view text) {
  return text.size() <= kMostIdBytes && all_of(text, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

std::string new_request_id() {
  thread_local std::mt19937_64 random{[] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }()};
  return fmt::format("{:016x}{:08x}", random(), random() >> 32);
}

std::string_view host_of(std::string_view text) {
  std::string_view host, rest;
  if (!text.empty() && text[0] == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    host = text.substr(0, text.find(':'));
    rest = text.substr(host.size());
  }
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const bool port = rest.empty() || rest == ":" || (rest[0] == ':' && all_of(rest.substr(1), digit));
  return port ? host : std::string_view();
}

bool is_own_name(std::string_view host) {
  if (lower_case(host) == "localhost") return true;
  if (host.find(':') != std::string_view::npos) return true;  // IPv6, for host_of() took a port away
  return all_of(host, [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.substr(0, 4) == "127.";
}

bool is_origin(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string_view name = text.substr(0, scheme), rest = text.substr(scheme + 3);
  return (name == "http" || name == "https") && rest.find_first_of("/?#@ ") == std::string_view::npos &&
         !host_of(rest).empty();
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string media_type(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (!content_type.empty() && content_type.back() == ' ') content_type.remove_suffix(1);
  return lower_case(content_type);
}

}  // namespace coppice::serve
