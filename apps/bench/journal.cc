#include "bench/journal.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "files.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

std::string line_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<Journal> Journal::open(const std::string& path, const ordered_json& settings) {
  Journal journal;
  journal.path_ = path;
  std::error_code ignored;
  if (path.empty()) return journal;
  if (!std::filesystem::exists(path, ignored)) {
    if (Status begun = journal.append(settings); !begun) return tl::unexpected(begun.error());
    return journal;
  }
  auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  // As it will be read back: 1.0 and 1 are the same number then.
  const ordered_json wanted = ordered_json::parse(line_of(settings));
  std::size_t begin = 0;
  for (std::size_t end; (end = text->find('\n', begin)) != std::string::npos; begin = end + 1) {
    ordered_json line = ordered_json::parse(text->substr(begin, end - begin), nullptr, false);
    if (begin == 0) {
      for (const auto& [name, value] : wanted.items()) {
        if (line.is_object() && line.contains(name) && line[name] == value) continue;
        return fail(fmt::format(
            "{} was begun with another {}; name another --json, or remove it to measure anew", path, name));
      }
      continue;
    }
    if (!line.is_object() || !line.contains("key") || !line["key"].is_string())
      return fail(
          fmt::format("{}: byte {} begins no line of ours; remove the file to measure anew", path, begin));
    journal.keys_.insert(line["key"].get<std::string>());
    journal.records_.push_back(std::move(line));
  }
  std::filesystem::resize_file(path, begin, ignored);  // what was cut off
  if (begin == 0) {
    if (Status begun = journal.append(settings); !begun) return tl::unexpected(begun.error());
  }
  return journal;
}

Status Journal::append(const ordered_json& line) const {
  if (path_.empty()) return {};
  std::ofstream out(path_, std::ios::binary | std::ios::app);
  out << line_of(line) << std::flush;
  if (!out) return fail(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  return {};
}

Status Journal::add(const std::string& key, const ordered_json& record) {
  ordered_json line = {{"key", key}};
  line.update(record);
  if (Status written = append(line); !written) return written;
  keys_.insert(key);
  records_.push_back(std::move(line));
  return {};
}

}  // namespace coppice::app
