// What a long run has finished, a line of JSON each, so that a run that was killed goes on with the same
// command. The first line says what the others were measured with; one that was cut off is forgotten.
#pragma once

#include <coppice/error.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace coppice::app {

class Journal {
 public:
  // Without a path nothing is kept. A journal that was made with other settings is refused: the error names
  // the first that differs.
  static Result<Journal> open(const std::string& path, const nlohmann::ordered_json& settings);

  bool has(const std::string& key) const { return keys_.count(key) != 0; }
  // The record gets "key" as its first field.
  Status add(const std::string& key, const nlohmann::ordered_json& record);
  const std::vector<nlohmann::ordered_json>& records() const { return records_; }

 private:
  Status append(const nlohmann::ordered_json& line) const;

  std::string path_;
  std::set<std::string> keys_;
  std::vector<nlohmann::ordered_json> records_;
};

}  // namespace coppice::app
