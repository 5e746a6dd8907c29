#include "answer.h"

#include <algorithm>

#include "terminal.h"

namespace coppice::app {
namespace {

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none. What terminals choke on is
// caught, not every overlong form.
std::size_t character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

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

bool AnswerPrinter::show_silently(const Event& event) {
  if (event.prefill < 1) {
    show_progress("reading the prompt", event.prefill);
  } else {
    clear_progress();
  }
  if (flags_.show_tree && event.tree != nullptr) show_tree(*event.tree);
  return !interrupted();
}

bool AnswerPrinter::show(const Event& event) {
  show_silently(event);
  if (flags_.colour_by_source) {
    for (const EmittedToken& token : event.tokens) {
      const Token one[] = {token.token};
      unpainted_.emplace_back(tokenizer_.decode(one, flags_.show_special).size(), token.source);
    }
    paint(event.text);
  } else {
    write_out(event.text);
  }
  flush_out();
  return !interrupted() && !output_lost();
}

// Text comes later than its tokens where a character or a stop string may be unfinished: each byte takes the
// colour of the token it stems from, a character that of its first byte.
void AnswerPrinter::paint(std::string_view text) {
  while (!text.empty()) {
    while (!unpainted_.empty() && unpainted_.front().first == 0) unpainted_.pop_front();
    std::size_t count = text.size();
    std::string_view colour;
    if (!unpainted_.empty()) {
      count = std::min(count, unpainted_.front().first);
      colour = source_colour(unpainted_.front().second);
    }
    const auto inside = [&](std::size_t at) {
      return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
    };
    while (inside(count)) ++count;
    say("{}{}{}", colour, text.substr(0, count), colour.empty() ? "" : kResetColour);
    text.remove_prefix(count);
    for (; count > 0 && !unpainted_.empty(); unpainted_.pop_front()) {
      const std::size_t used = std::min(count, unpainted_.front().first);
      count -= used;
      unpainted_.front().first -= used;
      if (unpainted_.front().first > 0) break;
    }
  }
}

void AnswerPrinter::finish() {
  clear_progress();
  write_out("\n");
  flush_out();
  if (!flags_.colour_by_source || sources_.empty()) return;
  if (!colours_wanted()) return note("[NO_COLOR is set: nothing is painted]\n");
  std::string legend;
  for (std::size_t d = 0; d < sources_.size(); ++d) {
    legend += fmt::format("  {}{}{}", source_colour(static_cast<int>(d)), sources_[d], kResetColour);
  }
  note("{}guessed by:{}{}  (unpainted: the model itself)\n", dim(), undim(), legend);
}

void AnswerPrinter::show_tree(const TreeTrace& tree) const {
  show_node(tree, 0, 0);
  const Token drawn[] = {tree.drawn};
  std::string decided;
  if (const int kept = static_cast<int>(tree.nodes.size()) - 1; tree.wanted > kept)
    decided += fmt::format("  ({} more guesses did not pay)", tree.wanted - kept);
  if (tree.probe) decided += "  (a probe)";
  note("{}=> {}{}{}\n", dim(), printable(tokenizer_.piece(drawn[0])), decided, undim());
}

void AnswerPrinter::show_node(const TreeTrace& tree, int node, int indent) const {
  const TreeTrace::Node& n = tree.nodes[static_cast<std::size_t>(node)];
  std::string who;
  for (std::size_t d = 0; d < sources_.size(); ++d) {
    if ((n.sources >> d & 1) != 0) who += fmt::format("{}{}", who.empty() ? "" : "+", sources_[d]);
  }
  note("{:>{}}{} {}", "", indent * 2, n.taken ? "*" : "-", printable(tokenizer_.piece(n.token)));
  if (node > 0) note("  {:.2f} {}", n.value, who);
  note("\n");
  for (std::size_t child = 1; child < tree.nodes.size(); ++child) {
    if (tree.nodes[child].parent == node) show_node(tree, static_cast<int>(child), indent + 1);
  }
}

void note_beyond_training(const Generation& answer, int trained) {
  const auto tokens = answer.stats.prompt_tokens + answer.tokens.size();
  if (tokens > static_cast<std::size_t>(trained))
    note("[longer than the {} tokens the model was trained on: it may be nonsense]\n", trained);
}

std::string printable(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = character(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (first == '\n') {
      out += "\\n";
    } else if (first == '\t') {
      out += "\\t";
    } else if (first == ' ' && out.empty()) {
      out += "_";
    } else if (length == 0 || first < 0x20 || first == 0x7f) {
      out += fmt::format("\\x{:02x}", first);
    } else {
      out += bytes.substr(0, length);
    }
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace coppice::app
