// What the commands of coppice-train share.
#pragma once

#include <coppice/train.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

namespace coppice::app {

using Train = std::function<Result<TrainReport>()>;
using ChooseTraining = std::function<void(Train)>;

// -m, --corpus, --out, --from, which every command has. `training` must outlive the app.
template <class Training>
void add_files(CLI::App& app, Training& training) {
  app.add_option("-m,--model", training.target, "the target, a GGUF file")->required();
  app.add_option("--corpus", training.corpora, "folders that coppice corpus wrote, one or more")->required();
  app.add_option("-o,--out", training.out,
                 "the file to write; OUT.csv, OUT.svg and OUT.checkpoint lie beside it")
      ->required();
  app.add_option("--from", training.from,
                 "a file of this kind to go on from, instead of the target's layers");
}

// The loop's options. `loop` must outlive the app.
void add_loop(CLI::App& app, TrainLoop& loop);

// Whether Ctrl-C was pressed; and a line on stderr.
bool interrupted();
void print_line(const std::string& line);

// When the command is given, `train` is what is to be done with its options.
template <class Training>
void choose_with(CLI::App& command, std::shared_ptr<Training> training, const ChooseTraining& choose,
                 Result<TrainReport> (*train)(const Training&)) {
  command.callback([training, choose, train] {
    training->loop.stop = interrupted;
    training->loop.progress = print_line;
    choose([training, train] { return train(*training); });
  });
}

// One file each.
void add_train_draft(CLI::App& app, const ChooseTraining& choose, const std::string& command);
void add_train_head(CLI::App& app, const ChooseTraining& choose, const std::string& command);

}  // namespace coppice::app
