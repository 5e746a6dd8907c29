// Shows an answer while it comes: streaming text, coloured by source, with the tree of each pass.
#pragma once

#include <coppice/coppice.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  // For Request::on_event. False when Ctrl-C was pressed or stdout takes no more.
  bool show(const Event& event);
  bool show_silently(const Event& event);  // progress and trees only: the answer is printed in another form
  void finish();                           // ends the line, and says what the colours mean

 private:
  void paint(std::string_view text);
  void show_tree(const TreeTrace& tree) const;
  void show_node(const TreeTrace& tree, int node, int indent) const;

  ShowFlags flags_;
  Tokenizer tokenizer_;
  std::vector<std::string> sources_;
  std::deque<std::pair<std::size_t, int>> unpainted_;  // bytes that a token brought, its source
};

// Says so where prompt and answer together are longer than the `trained` tokens the model knows.
void note_beyond_training(const Generation& answer, int trained);

// A token's text as one printable word: "\n" as \n, bytes that are no text as \xNN.
std::string printable(std::string_view bytes);

}  // namespace coppice::app
