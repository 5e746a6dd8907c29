#include "grammar/regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/check.h"
#include "grammar/cursor.h"

namespace coppice::core::grammar {
namespace {

constexpr int kMostNested = 60;
constexpr int kMostRepeats = 100000;
constexpr int kManyCharacters = 1 << 28;  // lengths stay below

const CodePoints& digits() {
  static const CodePoints kSet{{'0', '9'}};
  return kSet;
}
const CodePoints& word() {
  static const CodePoints kSet{{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}};
  return kSet;
}
// Those that Python's and ECMA's ideas of \s share.
const CodePoints& spaces() {
  static const CodePoints kSet{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
                               {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                               {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
  return kSet;
}
// \D, \W and \S say what is not in the classes above, and engines do not agree on what else is in them: only
// printable ASCII characters are taken.
CodePoints ascii_without(const CodePoints& set) { return CodePoints{{' ', '~'}}.without(set); }

int sum(int a, int b) { return a == kForever || b == kForever ? kForever : std::min(a + b, kManyCharacters); }
int product(int a, int times) {
  if (a == 0 || times == 0) return 0;
  if (a == kForever || times == kForever) return kForever;
  return static_cast<int>(std::min<std::int64_t>(std::int64_t{a} * times, kManyCharacters));
}

class RegexParser : Cursor {
 public:
  RegexParser(JsonText& json, std::string_view text) : Cursor(text), json_(json) {}
  Result<Pattern> run();

 private:
  tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(fmt::format("the pattern {}, at character {}: {}", shortened(text_), at_ + 1, what));
  }

  Result<Pattern> alternatives(bool outermost);
  Result<Pattern> sequence();
  Result<Pattern> whole_alternative();
  Result<Pattern> atom();
  Result<Pattern> group();
  Result<Pattern> repeated(Pattern part);
  Result<int> count();
  Result<CodePoints> char_class();
  Result<CodePoints> escape(bool in_class);
  Pattern one(const CodePoints& set) {
    return set.empty() ? Pattern{json_.rules().nothing(), 1, 1} : Pattern{json_.character(set), 1, 1};
  }
  Pattern anything() {
    return {json_.rules().repeat(json_.character(CodePoints::all()), 0, kForever), 0, kForever};
  }
  Pattern joined(const std::vector<Pattern>& parts);

  JsonText& json_;
  int nested_ = 0;
};

Pattern RegexParser::joined(const std::vector<Pattern>& parts) {
  std::vector<ExpressionId> inside;
  Pattern out;
  for (const Pattern& part : parts) {
    inside.push_back(part.inside);
    out.least = sum(out.least, part.least);
    out.most = sum(out.most, part.most);
  }
  out.inside = json_.rules().sequence(inside);
  return out;
}

// Without ^ anything may come before, without $ anything behind.
Result<Pattern> RegexParser::whole_alternative() {
  std::vector<Pattern> parts;
  if (!take('^')) parts.push_back(anything());
  COPPICE_TRY(const Pattern inner, sequence());
  parts.push_back(inner);
  if (!take('$')) parts.push_back(anything());
  return joined(parts);
}

Result<Pattern> RegexParser::alternatives(bool outermost) {
  std::vector<ExpressionId> choices;
  Pattern out;
  do {
    COPPICE_TRY(const Pattern next, outermost ? whole_alternative() : sequence());
    const bool first = choices.empty(), for_ever = out.most == kForever || next.most == kForever;
    out.least = first ? next.least : std::min(out.least, next.least);
    out.most = for_ever ? kForever : std::max(out.most, next.most);
    choices.push_back(next.inside);
  } while (take('|'));
  out.inside = json_.rules().choice(choices);
  return out;
}

Result<Pattern> RegexParser::sequence() {
  std::vector<Pattern> parts;
  while (!end() && peek() != '|' && peek() != ')' && peek() != '$') {
    if (json_.rules().full()) return refuse("it is too large");
    COPPICE_TRY(const Pattern part, atom());
    COPPICE_TRY(const Pattern whole, repeated(part));
    parts.push_back(whole);
  }
  return joined(parts);
}

Result<Pattern> RegexParser::group() {
  if (take("?:")) {
  } else if (peek() == '?') {
    const std::string_view after = text_.substr(at_);
    for (const std::string_view looks : {"?=", "?!", "?<=", "?<!"})
      if (after.starts_with(looks)) return refuse("looking ahead or behind is not possible in a grammar");
    if (!after.starts_with("?<"))
      return refuse("flags such as (?i) are not possible; write out what they allow, as in [aA]");
    at_ = std::min(text_.find('>', at_), text_.size() - 1) + 1;
  }
  if (++nested_ > kMostNested) return refuse("groups are nested too deeply");
  COPPICE_TRY(const Pattern inner, alternatives(false));
  if (peek() == '$') return refuse("$ is possible only at the end of the whole pattern or its alternatives");
  if (!take(')')) return refuse("a ) is missing");
  --nested_;
  return inner;
}

Result<Pattern> RegexParser::atom() {
  switch (peek()) {
    case '(':
      ++at_;
      return group();
    case '[': {
      ++at_;
      COPPICE_TRY(const CodePoints set, char_class());
      return one(set);
    }
    case '.':
      ++at_;
      return one(CodePoints::all().without({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    case '\\': {
      ++at_;
      COPPICE_TRY(const CodePoints set, escape(false));
      return one(set);
    }
    case '^':
      return refuse("^ is possible only at the beginning of the whole pattern or its alternatives");
    case '*':
    case '+':
    case '?':
      return refuse("there is nothing to repeat");
    default: {
      const auto point = next_point(text_, at_);
      if (!point) return refuse("this is no UTF-8");
      return one({{*point, *point}});
    }
  }
}

Result<Pattern> RegexParser::repeated(Pattern part) {
  int least = 0, most = kForever;
  const std::size_t begin = at_;
  if (take('*')) {
  } else if (take('+')) {
    least = 1;
  } else if (take('?')) {
    most = 1;
  } else if (peek() == '{' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9') {
    ++at_;
    COPPICE_TRY(least, count());
    most = least;
    if (take(',')) {
      most = kForever;
      if (peek() != '}') {
        COPPICE_TRY(most, count());
      }
    }
    if (!take('}') || (most != kForever && most < least)) {
      at_ = begin;
      return refuse("a repetition is {n}, {n,} or {n,m}");
    }
  } else {
    return part;
  }
  take('?');  // how greedy it is makes no difference to what matches
  if (peek() == '*' || peek() == '+') return refuse("one repetition follows another");
  return Pattern{json_.rules().repeat(part.inside, least, most), product(part.least, least),
                 product(part.most, most)};
}

Result<int> RegexParser::count() {
  int value = 0;
  const char* begin = text_.data() + at_;
  const auto parsed = std::from_chars(begin, text_.data() + text_.size(), value);
  if (parsed.ptr == begin || value < 0) return refuse("a repetition is {n}, {n,} or {n,m}");
  if (parsed.ec != std::errc() || value > kMostRepeats)
    return refuse(fmt::format("something is repeated too often; {} times are possible", kMostRepeats));
  at_ += static_cast<std::size_t>(parsed.ptr - begin);
  return value;
}

Result<CodePoints> RegexParser::char_class() {
  const bool others = take('^');
  bool has_classes = false;
  CodePoints set;
  const auto member = [&]() -> Result<CodePoints> {
    if (end()) return refuse("a ] is missing");
    if (take('\\')) {
      has_classes = has_classes || std::string_view("dwsDWS").find(peek()) != std::string_view::npos;
      return escape(true);
    }
    const auto point = next_point(text_, at_);
    if (!point) return refuse("this is no UTF-8");
    return CodePoints{{*point, *point}};
  };
  const auto single = [](const CodePoints& points) {
    return points.ranges().size() == 1 && points.ranges()[0].first == points.ranges()[0].last;
  };
  while (!take(']')) {
    COPPICE_TRY(const CodePoints first, member());
    if (peek() != '-' || at_ + 1 >= text_.size() || text_[at_ + 1] == ']') {
      set.add(first);
      continue;
    }
    ++at_;
    COPPICE_TRY(const CodePoints last, member());
    if (!single(first) || !single(last) || first.ranges()[0].first > last.ranges()[0].first)
      return refuse("this range of a class has no ends, or runs backwards");
    set.add(first.ranges()[0].first, last.ranges()[0].first);
  }
  if (!others) return set;
  return has_classes ? ascii_without(set) : CodePoints::all().without(set);
}

Result<CodePoints> RegexParser::escape(bool in_class) {
  if (end()) return refuse("\\ is the last character");
  const char c = text_[at_++];
  const auto point = [](char32_t p) { return CodePoints{{p, p}}; };
  switch (c) {
    case 'd':
      return digits();
    case 'D':
      return ascii_without(digits());
    case 'w':
      return word();
    case 'W':
      return ascii_without(word());
    case 's':
      return spaces();
    case 'S':
      return ascii_without(spaces());
    case 'n':
      return point('\n');
    case 'r':
      return point('\r');
    case 't':
      return point('\t');
    case 'f':
      return point('\f');
    case 'v':
      return point('\v');
    case 'b':
      if (in_class) return point('\b');
      return refuse("\\b looks around, which is not possible in a grammar");
    case 'x':
    case 'u': {
      const std::size_t digits_wanted = c == 'x' ? 2 : 4;
      const std::string_view hex = text_.substr(at_, digits_wanted);
      std::uint32_t value = 0;
      const auto parsed = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
      if (hex.size() != digits_wanted || parsed.ec != std::errc() || parsed.ptr != hex.data() + hex.size() ||
          is_surrogate(value))
        return refuse(
            fmt::format("\\{} is followed by {} hexadecimal digits of a character", c, digits_wanted));
      at_ += digits_wanted;
      return point(value);
    }
    default:
      break;
  }
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  if (c >= '1' && c <= '9' && !in_class)
    return refuse(fmt::format("\\{} refers back to a group, which is not possible in a grammar", c));
  if (c == 'c') return refuse("\\c is not known; control characters are written \\xNN");
  if (letter || static_cast<unsigned char>(c) >= 0x80)
    return refuse(
        fmt::format("\\{} is not known; there are \\d \\w \\s \\D \\W \\S \\n \\r \\t \\f \\v \\xNN \\uNNNN "
                    "and escaped signs",
                    letter ? std::string(1, c) : std::string("this")));
  return point(static_cast<unsigned char>(c));
}

Result<Pattern> RegexParser::run() {
  COPPICE_TRY(const Pattern out, alternatives(true));
  if (!end()) {
    return peek() == '$' ? refuse("$ is possible only at the end of the whole pattern or its alternatives")
                         : refuse("this was not expected");
  }
  return out;
}

}  // namespace

Result<Pattern> parse_pattern(JsonText& json, std::string_view text) { return RegexParser(json, text).run(); }

}  // namespace coppice::core::grammar
