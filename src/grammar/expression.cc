#include "grammar/expression.h"

#include <algorithm>
#include <limits>

namespace coppice::core::grammar {
namespace {

constexpr std::size_t kLongestWhy = 300;  // bytes; more reasons say nothing more
constexpr std::uint64_t kMostSize = std::numeric_limits<std::uint32_t>::max();

std::uint32_t saturated(std::uint64_t size) { return static_cast<std::uint32_t>(std::min(size, kMostSize)); }

}  // namespace

ExpressionId RuleSet::add(Expression node, const std::vector<ExpressionId>& parts) {
  node.first = static_cast<std::uint32_t>(parts_.size());
  node.count = static_cast<std::uint32_t>(parts.size());
  std::uint64_t size = 1;
  for (const ExpressionId part : parts) size += (*this)[part].size;
  if (node.kind == Expression::Kind::repeat)
    size *= static_cast<std::uint64_t>(std::max(1, node.b == kForever ? node.a + 1 : node.b));
  node.size = saturated(size);
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  nodes_.push_back(node);
  return static_cast<ExpressionId>(nodes_.size()) - 1;
}

ExpressionId RuleSet::bytes(int first, int last) {
  return add({.kind = Expression::Kind::bytes, .a = first, .b = last}, {});
}

ExpressionId RuleSet::sequence(const std::vector<ExpressionId>& parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expression::Kind::sequence}, parts);
}

ExpressionId RuleSet::choice(const std::vector<ExpressionId>& parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expression::Kind::choice}, parts);
}

ExpressionId RuleSet::repeat(ExpressionId part, int least, int most) {
  if (least == 1 && most == 1) return part;
  if (most == 0) return empty();
  return add({.kind = Expression::Kind::repeat, .a = least, .b = most}, {part});
}

void RuleSet::add_why(RuleId rule, std::string_view why) {
  std::string& text = rules_[static_cast<std::size_t>(rule)].why;
  if (why.empty() || text.size() > kLongestWhy) return;
  if (!text.empty()) text += "; ";
  text += why;
}

ExpressionId RuleSet::call(RuleId rule) { return add({.kind = Expression::Kind::call, .a = rule}, {}); }

RuleId RuleSet::add_rule(std::string name) {
  rules_.push_back({std::move(name), 0, "", -1});
  return static_cast<RuleId>(rules_.size()) - 1;
}

ExpressionId RuleSet::text(std::string_view bytes) {
  std::vector<ExpressionId> parts;
  for (const char c : bytes) {
    const int byte = static_cast<unsigned char>(c);
    parts.push_back(this->bytes(byte, byte));
  }
  return sequence(parts);
}

ExpressionId RuleSet::points(const CodePoints& set) {
  std::vector<ExpressionId> parts;
  for (const PointRange& range : set.ranges()) {
    for (const auto& ranges : utf8_sequences(range)) {
      std::vector<ExpressionId> one;
      for (const ByteRange& byte : ranges) one.push_back(bytes(byte.first, byte.last));
      parts.push_back(sequence(one));
    }
  }
  return choice(parts);
}

ExpressionId RuleSet::texts(std::vector<std::string> all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return prefix_tree(all, 0, all.size(), 0);
}

// Texts begin to end, sorted and different, without their first `depth` bytes, which they share.
ExpressionId RuleSet::prefix_tree(const std::vector<std::string>& all, std::size_t begin, std::size_t end,
                                  std::size_t depth) {
  constexpr std::size_t kMostDepth = 400;  // of the expression, which others go through recursively
  std::vector<ExpressionId> choices;
  if (begin < end && all[begin].size() == depth) {
    choices.push_back(empty());
    ++begin;
  }
  while (begin < end) {
    std::size_t last = begin + 1;
    while (last < end && all[last][depth] == all[begin][depth]) ++last;
    if (last - begin == 1 || depth > kMostDepth) {
      for (; begin < last; ++begin) choices.push_back(text(std::string_view(all[begin]).substr(depth)));
      continue;
    }
    // The beginning that all of them share: of sorted texts, what the first and the last do.
    std::size_t shared = depth + 1;
    while (shared < all[begin].size() && shared < all[last - 1].size() &&
           all[begin][shared] == all[last - 1][shared])
      ++shared;
    choices.push_back(sequence({text(std::string_view(all[begin]).substr(depth, shared - depth)),
                                prefix_tree(all, begin, last, shared)}));
    begin = last;
  }
  return choice(choices);
}

}  // namespace coppice::core::grammar
