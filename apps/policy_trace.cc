#include "policy_trace.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "files.h"

namespace coppice::app {

void PolicyTrace::add(CLI::App& app) {
  app.add_option("--policy-trace", path_, "file for what an adaptive policy decided, as JSON lines")
      ->group("Speculation (never changes the text)");
}

Status PolicyTrace::check() const { return path_.empty() ? Status() : check_output(path_); }

void PolicyTrace::hear(const Event& event, std::string_view request) {
  if (path_.empty()) return;
  for (const Decision& decision : event.decisions) {
    nlohmann::ordered_json line;
    if (request.empty())
      line["request"] = event.request;
    else
      line["request"] = request;
    line["cycle"] = decision.cycle;
    line["rule"] = to_string(decision.rule);
    line["number"] = decision.number;
    line["threshold"] = decision.threshold;
    line["decided"] = decision.decided;
    line["times"] = decision.times;
    lines_ += line.dump() + '\n';
  }
}

Status PolicyTrace::write() const { return path_.empty() ? Status() : write_text(path_, lines_); }

}  // namespace coppice::app
