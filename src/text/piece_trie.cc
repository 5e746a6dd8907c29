#include "text/piece_trie.h"

#include <algorithm>
#include <cstddef>

namespace coppice::core {
namespace {

// The sorted pieces that pass through a node, which is as many bytes deep.
struct Range {
  std::size_t begin, end, depth;
};

}  // namespace

// Breadth first, so that the children of a node lie side by side.
PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, Token>> pieces) {
  of_root_.fill(kNone);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Range> nodes = {{0, pieces.size(), 0}};
  labels_.push_back(0);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const Range range = nodes[node];
    std::size_t at = range.begin;
    tokens_.push_back(kNoToken);
    for (; at < range.end && pieces[at].first.size() == range.depth; ++at) {
      if (tokens_.back() == kNoToken) tokens_.back() = pieces[at].second;
    }
    children_.push_back(static_cast<Node>(nodes.size()));
    while (at < range.end) {
      const char byte = pieces[at].first[range.depth];
      std::size_t end = at;
      while (end < range.end && pieces[end].first[range.depth] == byte) ++end;
      if (node == kRoot) of_root_[static_cast<unsigned char>(byte)] = static_cast<Node>(nodes.size());
      nodes.push_back({at, end, range.depth + 1});
      labels_.push_back(static_cast<unsigned char>(byte));
      at = end;
    }
  }
  children_.push_back(static_cast<Node>(nodes.size()));
}

}  // namespace coppice::core
