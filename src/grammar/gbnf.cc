#include "grammar/gbnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "grammar/code_points.h"
#include "grammar/cursor.h"
#include "grammar/expression.h"

namespace coppice::core::grammar {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;  // bytes
constexpr int kMostNested = 100;                         // groups in groups
constexpr int kMostRepeats = 100000;                     // in {m,n}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; }

class GbnfParser : Cursor {
 public:
  explicit GbnfParser(std::string_view text) : Cursor(text) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') lines_.push_back(i + 1);
  }
  Result<Compiled> run();

 private:
  struct Known {
    RuleId rule = 0;
    std::size_t used_at = 0;  // first
    bool defined = false;
  };

  int line_of(std::size_t at) const;
  tl::unexpected<Error> refuse(std::size_t at, std::string_view what) const;
  void skip_space();
  std::string_view name();
  bool at_definition();
  Known& known(std::string_view name, std::size_t at);

  Status rule();
  Result<ExpressionId> alternatives();
  Result<ExpressionId> sequence();
  Result<ExpressionId> item();
  Result<ExpressionId> repeated(ExpressionId part);
  Result<int> count(std::size_t opened);
  Result<ExpressionId> literal();
  Result<ExpressionId> char_class();
  Result<char32_t> character(std::string_view where);
  Result<char32_t> escape();

  std::vector<std::size_t> lines_ = {0};  // where each begins
  int nested_ = 0;
  RuleSet rules_;
  std::map<std::string, Known, std::less<>> names_;
};

int GbnfParser::line_of(std::size_t at) const {
  return static_cast<int>(std::upper_bound(lines_.begin(), lines_.end(), at) - lines_.begin());
}

tl::unexpected<Error> GbnfParser::refuse(std::size_t at, std::string_view what) const {
  const int line = line_of(at);
  int column = 1;
  for (std::size_t i = lines_[static_cast<std::size_t>(line) - 1]; i < std::min(at, text_.size()); ++i)
    column += (static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80 ? 1 : 0;
  return fail(fmt::format("line {}, column {}: {}", line, column, what));
}

void GbnfParser::skip_space() {
  while (!end()) {
    if (peek() == '#') {
      while (!end() && peek() != '\n') ++at_;
    } else if (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') {
      ++at_;
    } else {
      return;
    }
  }
}

std::string_view GbnfParser::name() {
  const std::size_t begin = at_;
  while (!end() && is_name(peek())) ++at_;
  return text_.substr(begin, at_ - begin);
}

// Whether `name ::=` comes next: then the rule before it is over.
bool GbnfParser::at_definition() {
  const std::size_t begin = at_;
  const bool named = !name().empty();
  skip_space();
  const bool defines = named && text_.substr(at_).starts_with("::=");
  at_ = begin;
  return defines;
}

GbnfParser::Known& GbnfParser::known(std::string_view name, std::size_t at) {
  const auto there = names_.find(name);
  if (there != names_.end()) return there->second;
  Known fresh;
  fresh.rule = rules_.add_rule(std::string(name));
  fresh.used_at = at;
  return names_.emplace(std::string(name), fresh).first->second;
}

Status GbnfParser::rule() {
  const std::size_t begin = at_;
  if (!is_letter(peek()))
    return refuse(at_, "the name of a rule is wanted, as in: root ::= \"yes\" | \"no\"");
  const std::string_view named = name();
  skip_space();
  if (!text_.substr(at_).starts_with("::="))
    return refuse(at_, fmt::format("::= is wanted after the rule's name {}", shortened(named)));
  at_ += 3;
  Known& rule = known(named, begin);
  if (rule.defined)
    return refuse(begin, fmt::format("rule {} is defined twice; use | for alternatives", shortened(named)));
  rule.defined = true;
  const RuleId id = rule.rule;
  rules_.set_line(id, line_of(begin));
  COPPICE_TRY(const ExpressionId body, alternatives());
  if (!end() && !at_definition()) return refuse(at_, fmt::format("'{}' is not expected here", peek()));
  rules_.define(id, body);
  return {};
}

Result<ExpressionId> GbnfParser::alternatives() {
  std::vector<ExpressionId> choices;
  do {
    COPPICE_TRY(const ExpressionId one, sequence());
    choices.push_back(one);
  } while (take('|'));
  return rules_.choice(choices);
}

// An empty one is the empty text.
Result<ExpressionId> GbnfParser::sequence() {
  std::vector<ExpressionId> parts;
  while (true) {
    skip_space();
    const char c = peek();
    if (end() || c == '|' || c == ')') break;
    if (is_letter(c) && at_definition()) break;
    if (rules_.full()) return refuse(at_, "the grammar is too large");
    COPPICE_TRY(const ExpressionId part, item());
    skip_space();
    COPPICE_TRY(const ExpressionId whole, repeated(part));
    parts.push_back(whole);
  }
  return rules_.sequence(parts);
}

Result<ExpressionId> GbnfParser::item() {
  const std::size_t begin = at_;
  if (take('"')) return literal();
  if (take('[')) return char_class();
  if (take('.')) return rules_.points(CodePoints::all());
  if (take('(')) {
    if (++nested_ > kMostNested)
      return refuse(begin, fmt::format("groups are nested too deeply; {} levels are possible", kMostNested));
    COPPICE_TRY(const ExpressionId inner, alternatives());
    if (!take(')')) return refuse(at_, ") is missing for the group that begins here or before");
    --nested_;
    return inner;
  }
  if (is_letter(peek())) {
    const std::string_view named = name();
    return rules_.call(known(named, begin).rule);
  }
  return refuse(at_,
                fmt::format("'{}' is not expected here; a string, a class, a group or a rule is", peek()));
}

Result<ExpressionId> GbnfParser::repeated(ExpressionId part) {
  const std::size_t begin = at_;
  int least = 0, most = kForever;
  if (take('*')) {
  } else if (take('+')) {
    least = 1;
  } else if (take('?')) {
    most = 1;
  } else if (take('{')) {
    skip_space();
    const bool open_below = peek() == ',';
    if (!open_below) {
      COPPICE_TRY(least, count(begin));
    }
    skip_space();
    most = least;
    if (take(',')) {
      skip_space();
      most = kForever;
      if (peek() != '}') {
        COPPICE_TRY(most, count(begin));
      }
      skip_space();
    }
    if (!take('}')) return refuse(begin, "a repetition is {n}, {n,}, {,m} or {n,m}");
    if (most != kForever && most < least)
      return refuse(begin, fmt::format("{{{},{}}}: the least is more than the most", least, most));
  } else {
    return part;
  }
  skip_space();
  if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{')
    return refuse(at_, "one repetition follows another; use a group");
  return rules_.repeat(part, least, most);
}

Result<int> GbnfParser::count(std::size_t opened) {
  int value = 0;
  const char* begin = text_.data() + at_;
  const auto parsed = std::from_chars(begin, text_.data() + text_.size(), value);
  if (parsed.ptr == begin || value < 0) return refuse(opened, "a repetition is {n}, {n,}, {,m} or {n,m}");
  if (parsed.ec != std::errc() || value > kMostRepeats)
    return refuse(opened,
                  fmt::format("something is repeated too often; {} times are possible", kMostRepeats));
  at_ += static_cast<std::size_t>(parsed.ptr - begin);
  return value;
}

Result<ExpressionId> GbnfParser::literal() {
  const std::size_t begin = at_ - 1;
  std::string text;
  while (!take('"')) {
    if (end() || peek() == '\n') return refuse(begin, "the string that begins here has no end");
    COPPICE_TRY(const char32_t point, character("string"));
    append_utf8(text, point);
  }
  return rules_.text(text);
}

Result<ExpressionId> GbnfParser::char_class() {
  const std::size_t begin = at_ - 1;
  const bool others = take('^');
  CodePoints set;
  while (!take(']')) {
    if (end() || peek() == '\n') return refuse(begin, "the class that begins here has no end");
    const std::size_t from = at_;
    COPPICE_TRY(const char32_t first, character("class"));
    char32_t last = first;
    if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
      ++at_;
      COPPICE_TRY(last, character("class"));
    }
    if (last < first) return refuse(from, "the range runs backwards");
    set.add(first, last);
  }
  if (set.empty() && !others) return refuse(begin, "the class is empty, nothing would match it");
  if (others) set = CodePoints::all().without(set);
  if (set.empty()) return refuse(begin, "the class leaves no character, nothing would match it");
  return rules_.points(set);
}

Result<char32_t> GbnfParser::character(std::string_view where) {
  if (take('\\')) return escape();
  const auto point = next_point(text_, at_);
  if (!point) return refuse(at_, fmt::format("the {} has no character here", where));
  return *point;
}

Result<char32_t> GbnfParser::escape() {
  const std::size_t begin = at_ - 1;
  const char c = peek();
  ++at_;
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0) {
    constexpr std::string_view kNames = "nrt\"\\[]-^/", kMeant = "\n\r\t\"\\[]-^/";
    const std::size_t i = c == '\0' ? std::string_view::npos : kNames.find(c);
    if (i == std::string_view::npos)
      return refuse(
          begin, "no such escape; there are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xNN \\uNNNN \\UNNNNNNNN");
    return static_cast<char32_t>(kMeant[i]);
  }
  std::uint32_t point = 0;
  const std::string_view hex = text_.substr(std::min(at_, text_.size()), digits);
  const auto parsed = std::from_chars(hex.data(), hex.data() + hex.size(), point, 16);
  if (hex.size() != digits || parsed.ec != std::errc() || parsed.ptr != hex.data() + hex.size())
    return refuse(begin, fmt::format("\\{} is followed by {} hexadecimal digits", c, digits));
  if (point > kLastPoint || is_surrogate(point)) return refuse(begin, "there is no such character");
  at_ += digits;
  return static_cast<char32_t>(point);
}

Result<Compiled> GbnfParser::run() {
  if (text_.size() > kMostText)
    return fail(fmt::format("a grammar of {} bytes is too long; {} are possible", text_.size(), kMostText));
  if (const std::size_t valid = utf8_length(text_); valid < text_.size())
    return refuse(valid, "a byte that is no UTF-8");
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // the mark that some editors begin a file with
  skip_space();
  while (!end()) {
    COPPICE_TRY_STATUS(rule());
    skip_space();
  }
  const auto root = names_.find("root");
  if (root == names_.end() || !root->second.defined)
    return fail("the grammar has no rule root, with which every text begins");
  // The one that is used first.
  const std::pair<const std::string, Known>* undefined = nullptr;
  for (const auto& entry : names_)
    if (!entry.second.defined && (undefined == nullptr || entry.second.used_at < undefined->second.used_at))
      undefined = &entry;
  if (undefined != nullptr)
    return refuse(undefined->second.used_at,
                  fmt::format("rule {} is not defined", shortened(undefined->first)));
  return Compiled::make(rules_, root->second.rule);
}

}  // namespace

Result<Compiled> parse_gbnf(std::string_view text) { return GbnfParser(text).run(); }

}  // namespace coppice::core::grammar
