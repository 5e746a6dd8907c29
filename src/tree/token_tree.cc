#include "tree/token_tree.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace coppice::core {

TokenTree::TokenTree(int capacity) : capacity_(capacity) {
  COPPICE_CHECK(capacity >= 1 && capacity <= kMaxTreeNodes);
  const auto n = static_cast<std::size_t>(capacity);
  token_.reserve(n);
  for (auto* links : {&parent_, &depth_, &first_child_, &last_child_, &next_sibling_}) links->reserve(n);
  score_.reserve(n);
  value_.reserve(n);
  sources_.reserve(n);
  reset(kNoToken);
}

void TokenTree::reset(Token root) {
  token_.assign(1, root);
  parent_.assign(1, kNoNode);
  depth_.assign(1, 0);
  first_child_.assign(1, kNoNode);
  last_child_.assign(1, kNoNode);
  next_sibling_.assign(1, kNoNode);
  score_.assign(1, 0.0f);
  value_.assign(1, 1.0f);
  sources_.assign(1, 0);
}

int TokenTree::add(int parent, Token token, float score, float value, SourceMask sources) {
  COPPICE_CHECK(parent >= 0 && parent < size());
  if (const int there = child(parent, token); there != kNoNode) {
    sources_[there] |= sources;
    return there;
  }
  if (size() == capacity_ || depth_[parent] == kMaxTreeDepth) return kNoNode;
  const int node = size();
  token_.push_back(token);
  parent_.push_back(parent);
  depth_.push_back(depth_[parent] + 1);
  first_child_.push_back(kNoNode);
  last_child_.push_back(kNoNode);
  next_sibling_.push_back(kNoNode);
  score_.push_back(score);
  // Values never rise on the way down: keep_best() relies on it. A value that is not a number is worth
  // nothing.
  value_.push_back(value > 0.0f ? std::min(value, value_[parent]) : 0.0f);
  sources_.push_back(sources);
  (first_child_[parent] == kNoNode ? first_child_[parent] : next_sibling_[last_child_[parent]]) = node;
  last_child_[parent] = node;
  return node;
}

int TokenTree::find(std::span<const Token> path) const {
  int node = 0;
  for (const Token token : path)
    if ((node = child(node, token)) == kNoNode) break;
  return node;
}

int TokenTree::child(int node, Token token) const {
  int c = first_child_[node];
  while (c != kNoNode && token_[c] != token) c = next_sibling_[c];
  return c;
}

int TokenTree::path(int node, Token* out) const {
  const int depth = depth_[node];
  for (int at = depth; at > 0; node = parent_[node]) out[--at] = token_[node];
  return depth;
}

void TokenTree::keep_best(int nodes, int* kept) {
  const int old_size = size();
  std::array<int, kMaxTreeNodes> order;
  std::array<int, kMaxTreeNodes> moved;  // old node -> new node
  for (int i = 0; i < old_size; ++i) order[i] = i;
  // A parent is worth at least its child and comes before it, so whatever is kept has its ancestors.
  const int keep = std::clamp(nodes, 0, old_size - 1);
  std::nth_element(order.begin() + 1, order.begin() + 1 + keep, order.begin() + old_size,
                   [&](int a, int b) { return value_[a] != value_[b] ? value_[a] > value_[b] : a < b; });
  std::fill_n(moved.begin(), old_size, kNoNode);
  for (int i = 0; i <= keep; ++i) moved[order[i]] = 0;
  move_together(moved.data());
  if (kept != nullptr) std::copy_n(moved.begin(), old_size, kept);
}

void TokenTree::keep(std::span<const std::uint8_t> wanted) {
  COPPICE_CHECK(static_cast<int>(wanted.size()) == size());
  std::array<int, kMaxTreeNodes> moved;
  for (int i = 0; i < size(); ++i) {
    moved[i] = i == 0 || wanted[i] != 0 ? 0 : kNoNode;
    COPPICE_CHECK(i == 0 || moved[i] == kNoNode || moved[parent_[i]] != kNoNode);
  }
  move_together(moved.data());
}

// moved: [size], kNoNode for a node that goes; receives the new index of the others.
void TokenTree::move_together(int* moved) {
  const int old_size = size();
  int size = 0;
  for (int i = 0; i < old_size; ++i) {
    if (moved[i] == kNoNode) continue;
    const int to = moved[i] = size++;
    token_[to] = token_[i];
    parent_[to] = i == 0 ? kNoNode : moved[parent_[i]];
    depth_[to] = depth_[i];
    score_[to] = score_[i];
    value_[to] = value_[i];
    sources_[to] = sources_[i];
  }
  const auto n = static_cast<std::size_t>(size);
  token_.resize(n);
  for (auto* links : {&parent_, &depth_, &first_child_, &last_child_, &next_sibling_}) links->resize(n);
  score_.resize(n);
  value_.resize(n);
  sources_.resize(n);
  for (auto* links : {&first_child_, &last_child_, &next_sibling_})
    std::fill(links->begin(), links->end(), kNoNode);
  for (int i = 1; i < size; ++i) {
    const int parent = parent_[i];
    (first_child_[parent] == kNoNode ? first_child_[parent] : next_sibling_[last_child_[parent]]) = i;
    last_child_[parent] = i;
  }
}

}  // namespace coppice::core
