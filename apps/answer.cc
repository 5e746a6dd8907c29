#include "answer.h"

#include <fmt/core.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "terminal.h"

namespace coppice::app {

void ShowFlags::add(CLI::App& app) {
  app.add_flag("--colour-by-source,--color-by-source", colour_by_source,
               "paint each token by who guessed it");
  app.add_flag("--show-tree", show_tree,
               "print the tree of each pass, with values and what was taken (stderr)");
  app.add_flag("--show-special", show_special, "spell out control tokens in the text");
}

AnswerPrinter::AnswerPrinter(const ShowFlags& flags, const Tokenizer& tokenizer,
                             std::vector<std::string> sources)
    : flags_(flags), tokenizer_(tokenizer), sources_(std::move(sources)) {}

bool AnswerPrinter::show(const Event& event) {
  if (event.prefill < 1) {
    show_progress("reading the prompt", event.prefill);
  } else if (!event.tokens.empty()) {
    clear_progress();
  }
  if (flags_.show_tree && event.tree != nullptr) show_tree(*event.tree);
  if (flags_.colour_by_source) {
    for (const EmittedToken& token : event.tokens) {
      if (tokenizer_.ends_text(token.token) && !flags_.show_special) continue;
      const Token one[] = {token.token};
      const std::string_view colour = source_colour(token.source);
      fmt::print("{}{}{}", colour, tokenizer_.decode(one, flags_.show_special),
                 colour.empty() ? "" : kResetColour);
    }
  } else {
    fmt::print("{}", event.text);
  }
  std::fflush(stdout);
  return !interrupted();
}

void AnswerPrinter::finish() {
  clear_progress();
  if (!flags_.colour_by_source || sources_.empty()) return;
  std::string legend;
  for (std::size_t d = 0; d < sources_.size(); ++d) {
    legend += fmt::format("  {}{}{}", source_colour(static_cast<int>(d)), sources_[d], kResetColour);
  }
  fmt::print("\n{}guessed by:{}{}  (unpainted: the model itself)", kDim, kResetColour, legend);
}

void AnswerPrinter::show_tree(const TreeTrace& tree) const {
  show_node(tree, 0, 0);
  const Token drawn[] = {tree.drawn};
  fmt::print(stderr, "{}=> {}{}\n", kDim, printable(tokenizer_.piece(drawn[0])), kResetColour);
}

void AnswerPrinter::show_node(const TreeTrace& tree, int node, int indent) const {
  const TreeTrace::Node& n = tree.nodes[static_cast<std::size_t>(node)];
  std::string who;
  for (std::size_t d = 0; d < sources_.size(); ++d) {
    if ((n.sources >> d & 1) != 0) who += fmt::format("{}{}", who.empty() ? "" : "+", sources_[d]);
  }
  fmt::print(stderr, "{:>{}}{} {}", "", indent * 2, n.taken ? "*" : "-",
             printable(tokenizer_.piece(n.token)));
  if (node > 0) fmt::print(stderr, "  {:.2f} {}", n.value, who);
  fmt::print(stderr, "\n");
  for (std::size_t child = 1; child < tree.nodes.size(); ++child) {
    if (tree.nodes[child].parent == node) show_node(tree, static_cast<int>(child), indent + 1);
  }
}

std::string printable(std::string_view bytes) {
  std::string out;
  for (unsigned char c : bytes) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == ' ' && out.empty()) {
      out += "_";
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

Result<std::string> read_text(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(fmt::format("cannot read {}: there is no such file, or it may not be read", path));
  text << file.rdbuf();
  if (file.bad()) return fail(fmt::format("cannot read {} to its end", path));
  return text.str();
}

Status write_text(const std::string& path, const std::string& text) {
  const std::string aside = path + ".part";
  {
    std::ofstream file(aside, std::ios::binary);
    file << text;
    if (!file.flush()) return fail(fmt::format("cannot write {}", path));
  }
  if (std::rename(aside.c_str(), path.c_str()) == 0) return {};
  std::remove(aside.c_str());
  return fail(fmt::format("cannot write {}", path));
}

}  // namespace coppice::app
