// --policy-trace FILE: what the policy decided, as JSON lines (docs/policies.md).
#pragma once

#include <coppice/coppice.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace coppice::app {

class PolicyTrace {
 public:
  void add(CLI::App& app);  // the option
  Status check() const;     // that it could be written; before long work
  bool wanted() const { return !path_.empty(); }
  // The decisions of an event. `request`: how the lines name it, or the event's own number.
  void hear(const Event& event, std::string_view request = {});
  Status write() const;  // the file, if it is wanted

 private:
  std::string path_, lines_;
};

}  // namespace coppice::app
