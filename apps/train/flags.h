// What the commands of coppice-train share.
#pragma once

#include <coppice/train.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace coppice::app {

using Train = std::function<Result<TrainReport>()>;
using ChooseTraining = std::function<void(Train)>;

// -m, --corpus, --out, --from, which every command has.
struct FileFlags {
  std::string target, corpus, out, from;
  void add(CLI::App& app);
};

// The loop's options. `loop` must outlive the app.
void add_loop(CLI::App& app, TrainLoop& loop);

// Whether Ctrl-C was pressed; and a line on stderr.
bool interrupted();
void print_line(const std::string& line);

// One file each.
void add_train_draft(CLI::App& app, const ChooseTraining& choose, const std::string& command);
void add_train_head(CLI::App& app, const ChooseTraining& choose, const std::string& command);

}  // namespace coppice::app
