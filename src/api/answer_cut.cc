// Where an answer that is measured ends.
#include <coppice/bench.h>

#include <algorithm>
#include <map>

namespace coppice {
namespace {

// How many tokens stand before the first line that begins in column 0 behind one that is indented: a function
// may be begun again before its body comes. A closing bracket ends nothing.
std::size_t end_of_function(const Tokenizer& tokenizer, std::span<const Token> answer) {
  bool line_begins = true, spaces = false, body = false;
  for (std::size_t n = 0; n < answer.size(); ++n) {
    for (const char c : tokenizer.piece(answer[n])) {
      if (c == '\n') {
        line_begins = true;
        spaces = false;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        spaces = true;
      } else if (line_begins) {
        if (!spaces && body && std::string_view(")]}").find(c) == std::string_view::npos) return n;
        body = body || spaces;
        line_begins = false;
      }
    }
  }
  return answer.size();
}

// Where the first sequence of kRepeat tokens begins that was there twice before.
std::size_t third_time(std::span<const Token> answer) {
  std::map<std::vector<Token>, int> seen;
  for (std::size_t n = 0; n + kRepeat <= answer.size(); ++n) {
    const auto part = answer.subspan(n, kRepeat);
    if (++seen[std::vector<Token>(part.begin(), part.end())] == 3) return n;
  }
  return answer.size();
}

}  // namespace

AnswerCut cut_answer(const Tokenizer& tokenizer, std::span<const Token> answer, AnswerForm form) {
  AnswerCut cut{answer.size(), "limit"};
  const auto end =
      std::find_if(answer.begin(), answer.end(), [&](Token t) { return tokenizer.ends_text(t); });
  if (end != answer.end()) cut = {static_cast<std::size_t>(end - answer.begin()) + 1, "end of text"};
  const std::span<const Token> text(answer.begin(), end);
  if (form == AnswerForm::code) {
    if (const std::size_t n = end_of_function(tokenizer, text); n < text.size()) cut = {n, "function"};
  }
  if (const std::size_t n = third_time(text); n < cut.tokens && n < text.size()) cut = {n, "repeats"};
  return cut;
}

}  // namespace coppice
