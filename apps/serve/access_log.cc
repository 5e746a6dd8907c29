#include "access_log.h"

#include <fmt/core.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

namespace coppice::serve {
namespace {

// "2026-01-31T12:00:00Z"
std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return std::string(text, length);
}

}  // namespace

std::string access_line(const HttpOutcome& outcome, std::string_view time) {
  const nlohmann::ordered_json line = {
      {"time", time},           {"id", outcome.id},
      {"peer", outcome.peer},   {"method", outcome.method},
      {"path", outcome.path},   {"status", outcome.status},
      {"bytes", outcome.bytes}, {"seconds", std::round(outcome.seconds * 1e6) / 1e6},
      {"lost", outcome.lost}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<AccessLog> AccessLog::open(const std::string& path) {
  AccessLog log;
  if (path.empty()) return log;
  log.file_.reset(path == "-" ? stdout : std::fopen(path.c_str(), "a"));
  if (!log.file_) return fail(fmt::format("--log {}: {}", path, std::strerror(errno)));
  return log;
}

void AccessLog::write(const HttpOutcome& outcome) {
  if (!file_) return;
  const std::string line = access_line(outcome, utc_now()) + "\n";
  std::fwrite(line.data(), 1, line.size(), file_.get());
  std::fflush(file_.get());
}

}  // namespace coppice::serve
