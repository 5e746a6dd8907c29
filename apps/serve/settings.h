// Options of a command from three places: what was typed wins over the environment, which wins over a file.
#pragma once

#include <coppice/error.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::serve {

class Settings {
 public:
  // `command` has been parsed. `prefix` is of the environment's names: "COPPICE_SERVE_" and the option's long
  // name in capitals, - as _. Options in `never` are typed or not given at all.
  Settings(CLI::App& command, std::string prefix, std::vector<std::string> never);

  // "NAME=VALUE" as environ has them. An option that takes several values takes them with ; between. A name
  // with the prefix that is no option's is an error.
  Status read_environment(const std::vector<std::string>& environment);
  // JSON: an object of long names; several values are an array. Unknown names, a name twice, `config` and
  // other shapes are errors that name them and `file`.
  Status read_file(std::string_view text, const std::string& file);
  // What holds now, as such a file; without the options in `secret`.
  std::string print(const std::vector<std::string>& secret) const;

 private:
  CLI::Option* find(std::string_view name) const;  // by its long name; null if there is none

  CLI::App& command_;
  const std::string prefix_;
  std::vector<std::string> never_;
};

std::vector<std::string> environment_variables();  // of this process

}  // namespace coppice::serve
