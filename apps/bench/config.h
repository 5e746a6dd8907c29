// What the config files of long benches have in common: named files, drafter expressions in which {part} is
// the file that plays this part, and how much may be drafted.
#pragma once

#include <coppice/coppice.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace coppice::app {

struct DraftBudget {
  int nodes = 8, depth = 16, width = 16;
  float price = 0.01f;
  float pass_price = 0.4f;
};

// A row of a config: what guesses, and how much of it.
struct Mode {
  std::string name, drafters, prior, policy = "fixed";
  std::map<std::string, DraftBudget> budgets;  // by way of sampling: "greedy", "top-k"
  std::vector<std::string> missing;            // files it names that are not there
};

struct ConfigText {
  std::string path;
  nlohmann::ordered_json text;               // as it stands in the file
  std::map<std::string, std::string> files;  // of "files", by part

  // `table`: the object that must be there and must not be empty.
  static Result<ConfigText> read(const std::string& path, const char* table);

  tl::unexpected<Error> wrong(const std::string& what) const;  // with the file's name before it
  // {part} becomes its file; those that are not there are added to `missing`. `who` is named in errors.
  Status fill_in(const std::string& who, std::string& expression, std::vector<std::string>& missing) const;
  // Fields that are not there stay as they are; 1 to 64 nodes.
  Status read_budget(const std::string& who, const nlohmann::ordered_json& json, DraftBudget& budget) const;
  // {"drafters", "prior", "policy", "nodes", ..., "greedy": {"nodes", ...}, "top-k": {...}}. The policy is
  // for check_policy().
  Result<Mode> read_mode(const std::string& name, const nlohmann::ordered_json& json) const;
};

// Whether there is such a policy, with such options.
Status check_policy(const Mode& mode);
bool has_object(const nlohmann::ordered_json& json, const char* key);

}  // namespace coppice::app
