#include "text/special_tokens.h"

namespace coppice::core {
namespace {

std::size_t total_bytes(const std::vector<SpecialTokens::Spelling>& spellings) {
  std::size_t bytes = 0;
  for (const auto& spelling : spellings) bytes += spelling.text.size();
  return bytes;
}

}  // namespace

SpecialTokens::SpecialTokens(const std::vector<Spelling>& spellings)
    : nodes_(1), edges_(total_bytes(spellings)) {
  for (const Spelling& spelling : spellings) {
    std::uint32_t node = 0;
    for (const char c : spelling.text) {
      const auto byte = static_cast<unsigned char>(c);
      const std::uint32_t* next = edges_.find(node, byte);
      if (!next) {
        edges_.add(node, byte, static_cast<std::uint32_t>(nodes_.size()));
        node = static_cast<std::uint32_t>(nodes_.size());
        nodes_.emplace_back();
      } else {
        node = *next;
      }
    }
    Token& end = spelling.control ? nodes_[node].control : nodes_[node].user_defined;
    if (end == kNoToken) end = spelling.token;
    const auto first = static_cast<unsigned char>(spelling.text[0]);
    starts_[first] = true;
    if (!spelling.control) starts_user_defined_[first] = true;
  }
}

SpecialTokens::Match SpecialTokens::longest_at(std::string_view text, std::size_t begin,
                                               std::size_t control_end) const {
  Match match;
  std::uint32_t node = 0;
  for (std::size_t at = begin; at < text.size();) {
    const std::uint32_t* next = edges_.find(node, static_cast<unsigned char>(text[at]));
    if (!next) break;
    node = *next;
    ++at;
    const Token control = at <= control_end ? nodes_[node].control : kNoToken;
    const Token token = control != kNoToken ? control : nodes_[node].user_defined;
    if (token != kNoToken) match = {begin, at, token};
  }
  return match;
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, std::size_t from, std::size_t until,
                                         bool with_control) const {
  if (nodes_.size() == 1) return {};
  const auto& starts = with_control ? starts_ : starts_user_defined_;
  for (std::size_t at = from; at < until; ++at) {
    if (!starts[static_cast<unsigned char>(text[at])]) continue;
    const Match match = longest_at(text, at, with_control ? until : 0);
    if (match.token != kNoToken) return match;
  }
  return {};
}

}  // namespace coppice::core
