// Ranges of numbers as expressions over their digits.
#include <algorithm>
#include <cstdlib>

#include "grammar/json_text.h"

namespace coppice::core::grammar {
namespace {

ExpressionId digits(RuleSet& r, int least, int most) { return r.repeat(r.bytes('0', '9'), least, most); }

// Digits from `i` on that are at least those of `low` (or at most those of `high`); equally many.
ExpressionId at_least(RuleSet& r, const std::string& low, std::size_t i) {
  if (i == low.size()) return r.empty();
  const int rest = static_cast<int>(low.size() - i) - 1;
  std::vector<ExpressionId> choices = {r.sequence({r.bytes(low[i], low[i]), at_least(r, low, i + 1)})};
  if (low[i] < '9') choices.push_back(r.sequence({r.bytes(low[i] + 1, '9'), digits(r, rest, rest)}));
  return r.choice(choices);
}

ExpressionId at_most(RuleSet& r, const std::string& high, std::size_t i) {
  if (i == high.size()) return r.empty();
  const int rest = static_cast<int>(high.size() - i) - 1;
  std::vector<ExpressionId> choices = {r.sequence({r.bytes(high[i], high[i]), at_most(r, high, i + 1)})};
  if (high[i] > '0') choices.push_back(r.sequence({r.bytes('0', high[i] - 1), digits(r, rest, rest)}));
  return r.choice(choices);
}

// Equally long.
ExpressionId between(RuleSet& r, const std::string& low, const std::string& high, std::size_t i) {
  if (i == low.size()) return r.empty();
  if (low[i] == high[i]) return r.sequence({r.bytes(low[i], low[i]), between(r, low, high, i + 1)});
  const int rest = static_cast<int>(low.size() - i) - 1;
  std::vector<ExpressionId> choices = {r.sequence({r.bytes(low[i], low[i]), at_least(r, low, i + 1)}),
                                       r.sequence({r.bytes(high[i], high[i]), at_most(r, high, i + 1)})};
  if (low[i] + 1 < high[i])
    choices.push_back(r.sequence({r.bytes(low[i] + 1, high[i] - 1), digits(r, rest, rest)}));
  return r.choice(choices);
}

ExpressionId naturals_between(RuleSet& r, std::int64_t least, std::int64_t most) {
  if (least > most) return r.nothing();
  const std::string low = std::to_string(least), high = std::to_string(most);
  std::vector<ExpressionId> choices;
  for (std::size_t length = low.size(); length <= high.size(); ++length) {
    const std::string from = length == low.size() ? low : "1" + std::string(length - 1, '0');
    const std::string to = length == high.size() ? high : std::string(length, '9');
    choices.push_back(between(r, from, to, 0));
  }
  return r.choice(choices);
}

}  // namespace

ExpressionId integers_between(RuleSet& r, std::int64_t least, std::int64_t most) {
  least = std::max(least, -kMostInteger);
  most = std::min(most, kMostInteger);
  if (least > most) return r.nothing();
  std::vector<ExpressionId> choices;
  if (most >= 0) choices.push_back(naturals_between(r, std::max<std::int64_t>(least, 0), most));
  if (least < 0)
    choices.push_back(
        r.sequence({r.text("-"), naturals_between(r, std::max<std::int64_t>(-most, 1), -least)}));
  return r.choice(choices);
}

std::optional<Bound> bound_of(const Json& number, bool exclusive) {
  Bound out;
  out.there = true;
  out.exclusive = exclusive;
  std::string text = number.dump();
  out.negative = text[0] == '-';
  if (out.negative) text.erase(0, 1);
  long exponent = 0;
  if (const std::size_t e = text.find_first_of("eE"); e != std::string::npos) {
    exponent = std::strtol(text.c_str() + e + 1, nullptr, 10);
    text.erase(e);
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string all = text.substr(0, point);
  if (point < text.size()) all += text.substr(point + 1);
  long places = static_cast<long>(point) + exponent;  // digits before the point
  if (std::labs(places) > 4L * kMostDigits) return std::nullopt;
  if (places < 0) {
    all.insert(0, static_cast<std::size_t>(-places), '0');
    places = 0;
  }
  while (static_cast<long>(all.size()) < places) all += '0';
  out.whole = all.substr(0, static_cast<std::size_t>(places));
  out.part = all.substr(static_cast<std::size_t>(places));
  out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size()));
  if (out.whole.empty()) out.whole = "0";
  out.part.erase(out.part.find_last_not_of('0') + 1);
  if (out.whole == "0" && out.part.empty()) out.negative = false;
  if (out.whole.size() + out.part.size() > kMostDigits) return std::nullopt;
  return out;
}

namespace {

// What may stand behind a whole number that is the least's (tight_low) or the most's (tight_high), digit by
// digit.
class Fraction {
 public:
  Fraction(RuleSet& rules, const Bound& low, const Bound& high, int most)
      : r_(rules), low_(low), high_(high), most_(static_cast<std::size_t>(most)) {}

  ExpressionId with_point(bool tight_low, bool tight_high) {
    std::vector<ExpressionId> choices;
    if (may_end(0, tight_low, tight_high)) choices.push_back(r_.empty());
    choices.push_back(r_.sequence({r_.text("."), some(0, tight_low, tight_high)}));
    return r_.choice(choices);
  }

 private:
  // The value so far, all digits equal to those of the tight ends, is inside.
  bool may_end(std::size_t i, bool tight_low, bool tight_high) const {
    if (tight_low && (i < low_.part.size() || low_.exclusive)) return false;
    return !tight_high || i < high_.part.size() || !high_.exclusive;
  }
  // One digit or more from the i-th on.
  ExpressionId some(std::size_t i, bool tight_low, bool tight_high) {
    if (i == most_) return r_.nothing();
    if (tight_low && i >= low_.part.size() && !low_.exclusive) tight_low = false;
    const int rest = static_cast<int>(most_ - i) - 1;
    const char from = tight_low && i < low_.part.size() ? low_.part[i] : '0';
    const char to = !tight_high ? '9' : i < high_.part.size() ? high_.part[i] : '0';
    std::vector<ExpressionId> choices;
    for (char digit = from; digit <= to; ++digit) {
      const bool low = tight_low && digit == from, high = tight_high && digit == to;
      const ExpressionId tail = low || high ? any(i + 1, low, high) : digits(r_, 0, rest);
      choices.push_back(r_.sequence({r_.bytes(digit, digit), tail}));
    }
    return r_.choice(choices);
  }
  ExpressionId any(std::size_t i, bool tight_low, bool tight_high) {
    std::vector<ExpressionId> choices;
    if (may_end(i, tight_low, tight_high)) choices.push_back(r_.empty());
    choices.push_back(some(i, tight_low, tight_high));
    return r_.choice(choices);
  }

  RuleSet& r_;
  const Bound &low_, &high_;
  std::size_t most_;
};

// Numbers without a sign from `low`, which is there, to `high`, which may not be.
ExpressionId magnitudes_between(RuleSet& r, const Bound& low, const Bound& high) {
  const std::int64_t from = std::strtoll(low.whole.c_str(), nullptr, 10);
  const std::int64_t to = high.there ? std::strtoll(high.whole.c_str(), nullptr, 10) : 0;
  if (high.there && from > to) return r.nothing();
  const int places =
      kMostDigits - static_cast<int>(std::max(low.whole.size(), high.there ? high.whole.size() : 0));
  Fraction fraction(r, low, high, std::max(places, 1));
  if (high.there && from == to) return r.sequence({r.text(low.whole), fraction.with_point(true, true)});
  std::vector<ExpressionId> choices = {r.sequence({r.text(low.whole), fraction.with_point(true, false)})};
  if (high.there) choices.push_back(r.sequence({r.text(high.whole), fraction.with_point(false, true)}));
  constexpr std::int64_t kMostWhole = 999'999'999'999'999;  // kMostDigits nines
  choices.push_back(r.sequence(
      {naturals_between(r, from + 1, high.there ? to - 1 : kMostWhole), fraction.with_point(false, false)}));
  return r.choice(choices);
}

}  // namespace

ExpressionId numbers_between(RuleSet& r, const Bound& least, const Bound& most) {
  Bound zero, above_zero;
  zero.there = above_zero.there = above_zero.exclusive = true;
  std::vector<ExpressionId> choices;
  if (!most.there || !most.negative)
    choices.push_back(magnitudes_between(r, least.there && !least.negative ? least : zero, most));
  if (!least.there || least.negative) {
    const Bound& low = most.there && most.negative ? most : above_zero;
    choices.push_back(r.sequence({r.text("-"), magnitudes_between(r, low, least)}));
  }
  return r.choice(choices);
}

}  // namespace coppice::core::grammar
