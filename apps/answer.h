// Shows an answer while it comes: streaming text, coloured by source, with the tree of each pass.
#pragma once

#include <coppice/coppice.h>

#include <CLI/CLI.hpp>
#include <string>

namespace coppice::app {

struct ShowFlags {
  bool colour_by_source = false;
  bool show_tree = false;
  bool show_special = false;

  void add(CLI::App& app);
};

class AnswerPrinter {
 public:
  AnswerPrinter(const ShowFlags& flags, const Tokenizer& tokenizer, std::vector<std::string> sources);
  // For Request::on_event. False when Ctrl-C was pressed.
  bool show(const Event& event);
  void finish();

 private:
  void show_tree(const TreeTrace& tree) const;
  void show_node(const TreeTrace& tree, int node, int indent) const;

  ShowFlags flags_;
  Tokenizer tokenizer_;
  std::vector<std::string> sources_;
  std::string held_;  // bytes of an unfinished character
};

// A token's text as one printable word: "\n" as \n, bytes that are no text as \xNN.
std::string printable(std::string_view bytes);

// What a person types and files carry: the text of a file, of stdin ("-"), or as given.
Result<std::string> read_text(const std::string& path);
// Written aside, then renamed: nobody ever sees half a file.
Status write_text(const std::string& path, const std::string& text);

}  // namespace coppice::app
